"""Rows of a frame written to data files by the tasks of a job."""
