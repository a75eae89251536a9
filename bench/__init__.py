"""Frazil measured beside its peers, in one run on one machine. See `bench/README.md`."""
