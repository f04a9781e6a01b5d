"""Run it: executor, retry, breaker, cache, rate, recovery."""
