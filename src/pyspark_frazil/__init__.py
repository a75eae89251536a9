"""Lets Spark find the data source `frazil` without a register call."""
