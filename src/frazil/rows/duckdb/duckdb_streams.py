"""Results of DuckDB as streams of Arrow batches, and what ended one that failed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from frazil.filter.text.quotes import quoted

if TYPE_CHECKING:
    import duckdb
    from duckdb.sqltypes import DuckDBPyType

_INTERRUPTED: Final = "INTERRUPT Error"
_AS_TEXT: Final = ("uhugeint", "bit", "time with time zone", "bignum", "varint")


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


def in_arrow_types(relation: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """A relation whose values Arrow can hold."""
    outputs = casts(relation.columns, relation.types)
    return relation if outputs is None else relation.project(outputs)


def casts(names: Sequence[str], types: Sequence[DuckDBPyType]) -> str | None:
    """What to select in place of columns that Arrow cannot hold: sums of integers, which have 128
    bits, become decimals; bits and times with a zone become text. None if it can hold all."""
    outputs: list[str] = []
    for at, (name, kind) in enumerate(zip(names, types, strict=True), start=1):
        other = _arrow_type(kind)
        value = f"#{at}" if other is None else f"CAST(#{at} AS {other})"
        outputs.append(f"{value} AS {quoted(name)}")
    if not any(output.startswith("CAST") for output in outputs):
        return None
    return ", ".join(outputs)


def _arrow_type(kind: DuckDBPyType) -> str | None:
    """The type to cast to, as text; None if Arrow has this one."""
    if kind.id == "hugeint":
        return "DECIMAL(38,0)"
    if kind.id in _AS_TEXT:
        return "VARCHAR"
    if kind.id not in ("struct", "list", "array", "map"):
        return None
    inside = dict(kind.children)
    changed = {
        name: _arrow_type(child) for name, child in inside.items() if not isinstance(child, int)
    }
    if not any(changed.values()):
        return None
    texts = {name: changed.get(name) or str(child) for name, child in inside.items()}
    match kind.id:
        case "struct":
            fields = ", ".join(f"{quoted(name)} {text}" for name, text in texts.items())
            return f"STRUCT({fields})"
        case "map":
            return f"MAP({texts['key']}, {texts['value']})"
        case "array":
            return f"{texts['child']}[{texts['size']}]"
    return f"{texts['child']}[]"
