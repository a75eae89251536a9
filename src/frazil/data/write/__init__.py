"""Rows into data files: what comes in is conformed, partitioned, sorted and written."""
