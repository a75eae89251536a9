"""Rows out of data files, as the table's columns of today."""
