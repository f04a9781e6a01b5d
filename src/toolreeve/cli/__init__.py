"""The command line: one module a group of commands, imported when it is asked for."""
