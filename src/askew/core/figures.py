"""What a figure of chosen pairs was measured on: data that the choice has not seen, or the data that it was made by."""

HELD_OUT, IN_SAMPLE = "held-out", "in-sample"
