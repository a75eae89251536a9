"""Expressions of polars, pyarrow and pandas as filters."""
