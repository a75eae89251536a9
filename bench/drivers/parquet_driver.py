"""DuckDB on plain Parquet files: what reading costs without any table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import duckdb

from bench.drivers.base import measured, serve


class Driver:
    """Queries over files that somebody else wrote."""

    def about(self) -> dict[str, Any]:
        """Versions and settings."""
        return {
            "version": f"duckdb {duckdb.__version__}",
            "settings": "read_parquet over the data files of Frazil's tables",
        }

    def attach(self, files: dict[str, list[str]]) -> None:
        """Views of these names over these files."""
        self.con = duckdb.connect()
        for name, paths in files.items():
            listed = ", ".join(f"'{path}'" for path in paths)
            self.con.execute(f"create view {name} as from read_parquet([{listed}])")

    def query(self, text: str) -> dict[str, Any]:
        """Run a statement to its last row."""
        return measured(lambda: self.con.execute(text).to_arrow_table().num_rows)


if __name__ == "__main__":
    serve(Driver())
