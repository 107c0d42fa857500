"""The data on which selected pairs were measured: held-out data, or in-sample (the data that selected the pairs)."""

HELD_OUT, IN_SAMPLE = "held-out", "in-sample"
