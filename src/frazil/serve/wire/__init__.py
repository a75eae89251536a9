"""Shapes of requests and answers of the Iceberg REST catalog."""
