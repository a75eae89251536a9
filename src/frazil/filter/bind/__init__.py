"""Filters bound to a schema: names become columns, literals take the column's type."""
