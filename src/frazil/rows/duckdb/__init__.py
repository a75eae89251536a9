"""The embedded engine: scans and row-level changes as DuckDB queries."""
