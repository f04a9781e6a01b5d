"""The `doctor` command: checks of the machine, the configuration and every control."""
