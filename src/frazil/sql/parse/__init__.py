"""Text to statements. Queries and expressions stay text."""
