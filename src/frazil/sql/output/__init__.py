"""The result of a statement, and rows as text."""
