"""Filters decide which candidates are kept, and give a reason for each candidate that is dropped."""
