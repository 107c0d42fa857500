"""What the numbers are worth: intervals, paired tests, corrections."""
