"""Every rule of the format, checked against a table."""
