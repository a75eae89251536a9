"""The tables of a query: found, pruned by its conditions, made known to the engine."""
