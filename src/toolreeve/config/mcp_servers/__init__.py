"""Which servers were written down, and where? Every client's format, read into one."""
