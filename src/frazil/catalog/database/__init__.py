"""SQL databases as a catalog uses them: connections, transactions, counted statements."""
