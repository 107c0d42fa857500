"""No test is timed: the first use of a compiled loop takes as long as it takes."""

from hypothesis import settings

settings.register_profile("askew", deadline=None)
settings.load_profile("askew")
