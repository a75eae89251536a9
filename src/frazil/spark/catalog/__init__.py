"""The SQL catalog in Spark: namespaces, definitions, procedures."""
