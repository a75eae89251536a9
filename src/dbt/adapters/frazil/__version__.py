"""The version that `dbt --version` shows."""

from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed

try:
    version = installed("frazil")
except PackageNotFoundError:  # run from sources that are not installed
    version = "0.0.0"
