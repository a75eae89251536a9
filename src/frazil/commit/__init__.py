"""The write path: an intent as a value, replayed on a fresh head until it lands."""
