"""Hypothesis judges what is right, not how fast a busy machine is."""

from hypothesis import HealthCheck, settings

settings.register_profile("toolreeve", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("toolreeve")
