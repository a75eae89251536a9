"""Manifests and metadata of v1 to v3 tables, as the same columns as v4's."""
