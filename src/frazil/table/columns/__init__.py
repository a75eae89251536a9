"""Changing a table's columns, partitioning and order."""
