"""One small script per peer, run in the peer's own environment; JSON lines in and out."""
