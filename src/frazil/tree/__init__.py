"""The metadata tree of one snapshot: read it, edit it as a value, write it."""
