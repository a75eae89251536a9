"""The data source `frazil`: batches and streams."""
