"""The macros of the adapter, found by dbt through this path."""

from pathlib import Path

PACKAGE_PATH = str(Path(__file__).parent)
