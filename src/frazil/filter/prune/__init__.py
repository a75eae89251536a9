"""Filters over statistics and partition tuples: which files might match, which must."""
