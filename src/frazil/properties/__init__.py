"""The properties that Frazil reads."""
