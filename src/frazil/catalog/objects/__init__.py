"""A catalog whose state is objects of a bucket, swapped by conditional requests."""
