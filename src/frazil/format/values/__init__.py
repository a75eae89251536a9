"""Iceberg's types as Arrow types, and single values as bytes."""
