"""Tables as v2 and v3 metadata: what stock Iceberg clients are shown."""
