"""Updates that write columns instead of rows."""
