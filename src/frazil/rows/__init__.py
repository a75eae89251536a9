"""What happens to rows: scans of them, and deletes, updates, merges and compaction by an engine."""
