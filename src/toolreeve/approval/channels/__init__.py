"""Where a person is asked: one channel, one module."""
