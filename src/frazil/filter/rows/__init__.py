"""Filters over rows."""
