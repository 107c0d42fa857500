"""What the programs that train the shipped adapters share."""
