"""What Spark's Java side asks Python for: one verb, one JSON text, one answer."""
