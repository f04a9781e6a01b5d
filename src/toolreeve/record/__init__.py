"""Durable record: audit chain, store, undo, budgets, events, metrics."""
