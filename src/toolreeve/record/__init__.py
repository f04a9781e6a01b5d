"""What happened? Audit chain, store, undo, events, metrics."""
