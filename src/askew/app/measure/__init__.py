"""Measure runs and compare them."""
