"""Maintenance of a table: compaction, expiry, orphans, metadata rewrites, health, checks,
clones."""
