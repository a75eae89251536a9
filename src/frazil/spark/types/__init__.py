"""Table types, values and defaults as Spark has them."""
