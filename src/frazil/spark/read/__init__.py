"""Planned scans read by Spark's own Parquet reader, or by Arrow on executors."""
