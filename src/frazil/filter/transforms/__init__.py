"""Partition transforms over whole columns."""
