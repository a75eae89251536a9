"""A Paimon table becomes a v4 table of a catalog, without a data file being copied."""
