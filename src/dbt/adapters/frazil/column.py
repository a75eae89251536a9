"""Columns as dbt compares and prints them."""

from __future__ import annotations

from dbt.adapters.base import Column

from frazil.filter.text.quotes import quoted


class FrazilColumn(Column):
    """A column. Types are DuckDB's words, and text has no length."""

    TYPE_LABELS = {
        "STRING": "VARCHAR",
        "TEXT": "VARCHAR",
        "INT": "INTEGER",
        "LONG": "BIGINT",
        "FLOAT": "DOUBLE",
    }

    @property
    def quoted(self) -> str:
        return quoted(self.column)

    @property
    def data_type(self) -> str:
        return str(self.dtype)

    def is_string(self) -> bool:
        return self.dtype.upper() in ("VARCHAR", "STRING", "TEXT")

    def is_number(self) -> bool:
        return self.is_integer() or self.is_numeric() or self.is_float()

    def is_integer(self) -> bool:
        return self.dtype.upper() in ("INTEGER", "INT", "BIGINT", "LONG")

    def is_numeric(self) -> bool:
        return self.dtype.upper().startswith("DECIMAL")

    def is_float(self) -> bool:
        return self.dtype.upper() in ("FLOAT", "DOUBLE")

    @classmethod
    def string_type(cls, size: int) -> str:
        return "VARCHAR"
