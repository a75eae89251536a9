"""What has rows, and every kind of frame that they can become."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from frazil.errors import InvalidInput
from frazil.extras import needed

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa


class ArrowRows(ABC):
    """What has rows as an Arrow table and as a stream."""

    __slots__ = ()

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """All rows as an Arrow table."""

    @abstractmethod
    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as an Arrow stream."""

    def to_pandas(self, **options: Any) -> pandas.DataFrame:
        """All rows as a pandas frame."""
        needed("pandas", "to_pandas")
        return self.to_arrow().to_pandas(**options)

    def to_polars(self) -> polars.DataFrame:
        """All rows as a polars frame."""
        frame: polars.DataFrame = needed("polars", "to_polars").DataFrame(self.to_arrow())
        return frame

    def to_pylist(self) -> list[dict[str, Any]]:
        """All rows as dictionaries."""
        return _python_rows(self.to_arrow())

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self.to_reader():
            yield from _python_rows(batch)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Any library that speaks Arrow's C stream can take the rows directly."""
        return self.to_reader().__arrow_c_stream__(requested_schema)


def _python_rows(rows: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    try:
        return _decoded(rows)
    except (OverflowError, ValueError) as error:  # infinity, or a year above 9999
        raise InvalidInput(
            f"Python has no such value: {error}. Read the rows as Arrow, or cast the column to text"
        ) from error


def _decoded(rows: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    from frazil.format.values.variant_type import has_marked

    if not has_marked(rows.schema):
        return list(rows.to_pylist())
    from frazil.data.variants import python_rows

    return python_rows(rows)
