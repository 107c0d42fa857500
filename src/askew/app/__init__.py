"""The story, one short file per stage: where readers, counters, measures and the store come together."""
