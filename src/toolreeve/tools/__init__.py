"""The builtin tools. They see capabilities (`Context`), never the machine."""
