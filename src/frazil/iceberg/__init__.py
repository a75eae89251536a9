"""Iceberg's own values: types, schemas, partition specs, sort orders, transforms, expressions."""
