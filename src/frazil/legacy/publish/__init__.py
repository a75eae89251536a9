"""A v4 snapshot written out as ordinary v2 or v3 metadata."""
