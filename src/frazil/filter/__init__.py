"""Filters: from text or PyIceberg expressions to masks over manifest entries and rows."""
