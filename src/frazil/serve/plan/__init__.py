"""Scan plans for clients, in parts of a bounded size."""
