"""Iceberg v1 to v3 tables: opened where they are, upgraded in place, and v4 published back."""
