"""The agent side of ACP: Toolreeve's own agent in editors."""
