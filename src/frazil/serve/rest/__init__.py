"""The endpoints of the Iceberg REST catalog, and commits of its clients."""
