"""What the bytes mean: pure functions between bytes, Arrow columns and values; no I/O."""
