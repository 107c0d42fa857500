"""The tasks of askew, one short file per stage: they combine readers, counters, measures and the store."""
