"""Paimon's metadata and statistics, read as columns."""
