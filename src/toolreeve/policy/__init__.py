"""May it run? Layers, rules, modes and budgets, all pure."""
