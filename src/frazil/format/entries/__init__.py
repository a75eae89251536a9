"""Content entries: their fields, batches of them, and manifests in Parquet."""
