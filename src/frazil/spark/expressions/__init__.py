"""Filters and expressions as Spark columns, and Spark's filters as ours."""
