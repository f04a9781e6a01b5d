"""Permission decisions: layers, rules, modes and budgets, all pure."""
