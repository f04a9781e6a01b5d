"""Execution of admitted calls: executor, retry, breaker, cache, recovery, progress."""
