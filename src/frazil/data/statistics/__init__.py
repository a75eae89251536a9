"""Statistics of data files: of rows as they are written, or from another writer's footer."""
