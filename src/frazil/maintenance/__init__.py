"""Care of a table: expiry, orphans, metadata rewrites, health, checks, clones, comparison."""
