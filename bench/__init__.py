"""Benchmarks and attacks: ratios against a baseline of the same run, printed, not asserted."""
