"""How Spark finds the data source `frazil` without being told: see `frazil.spark.source.source`."""

from frazil.spark.source.source import FrazilSource as DefaultSource

__all__ = ["DefaultSource"]
