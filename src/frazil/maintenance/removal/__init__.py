"""Snapshots and files that go: expiry, orphans, purge, and what is still reached."""
