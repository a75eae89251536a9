"""Results of DuckDB as streams of Arrow batches, and what ended one that failed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pyarrow as pa

if TYPE_CHECKING:
    import duckdb

_INTERRUPTED: Final = "INTERRUPT Error"


@contextmanager
def streamed(
    reader: pa.RecordBatchReader, connection: duckdb.DuckDBPyConnection, query: str
) -> Iterator[pa.RecordBatchReader]:
    """The rows of a query as they come; a failure is raised with its cause. Afterwards the
    connection is free, whether all rows were read or not."""

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            yield from reader
        except Exception as error:
            reader.close()
            raise cause(error, connection, query) from error

    try:
        yield pa.RecordBatchReader.from_batches(reader.schema, batches())
    finally:
        reader.close()


def cause(error: Exception, connection: duckdb.DuckDBPyConnection, query: str) -> Exception:
    """Why a stream failed. If one thread of DuckDB fails, the reader may be told only that another
    one was interrupted. Running the query again without a reader raises the real error."""
    if _INTERRUPTED not in str(error):
        return error
    try:
        connection.execute(f"EXPLAIN ANALYZE {query}")
    except Exception as raised:
        return raised
    return error
