"""Row-level changes as Spark jobs."""
