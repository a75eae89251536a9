"""Endpoints of Frazil's own client: heads, group commit, turns."""
