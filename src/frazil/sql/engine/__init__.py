"""DuckDB behind the sessions of a catalog, and what it remembers between queries."""
