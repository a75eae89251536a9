"""What the bytes mean: pure functions between bytes, Arrow columns and values. No file is touched here."""
