"""User rows in files: what comes in conforms to the schema, what goes out is today's columns."""
