"""Statements about the chain that both databases share."""

OPEN_INTENTS = """
    SELECT call_id, body FROM audit AS intent WHERE seq > ? AND seq <= ? AND kind = 'intent' AND NOT EXISTS (
        SELECT 1 FROM audit AS outcome WHERE outcome.call_id = intent.call_id AND outcome.kind IN ('call', 'lost')
    )
"""
