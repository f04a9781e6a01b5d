"""Core vocabulary: calls, tools, results, verdicts, effects.

Imports nothing above itself.
"""
