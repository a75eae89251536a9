"""Rows of primary-key files, and how those with the same key become one, as SQL for DuckDB.

Columns of the table are read as those of any file. Sequence number and row kind have ids that
Iceberg gives to columns of its own, so they are read by name and added. Merge engines are Paimon's,
by what the table's options say; an option that is not implemented here is refused by its name, and
rows are never merged by other rules than Paimon's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

from frazil.data.read.read_files import Reading, read_file
from frazil.data.schema import arrow_schema
from frazil.data.slices import DataFileSlice
from frazil.errors import FormatError, Unsupported
from frazil.filter.text.quotes import quoted
from frazil.paimon.read.data_types import TypeName
from frazil.paimon.read.table_schema import INSERT_KINDS, KIND, MergeEngine, TableSchema
from frazil.paimon.read.vector_files import Positions
from frazil.value_classes import frozen

SEQUENCE: Final = "_SEQUENCE_NUMBER"

_AGGREGATES: Final = {
    "sum": "CAST(sum({column}) AS {type})",
    "min": "min({column})",
    "max": "max({column})",
    "bool_and": "bool_and({column})",
    "bool_or": "bool_or({column})",
    "last_value": "last({column} ORDER BY {order})",
    "last_non_null_value": "last({column} ORDER BY {order}) FILTER ({column} IS NOT NULL)",
    "first_value": "first({column} ORDER BY {order})",
    "first_non_null_value": "first({column} ORDER BY {order}) FILTER ({column} IS NOT NULL)",
    "first_not_null_value": "first({column} ORDER BY {order}) FILTER ({column} IS NOT NULL)",
}
_NEWEST: Final = "last_non_null_value"
_REFUSED: Final = (
    "partial-update.remove-record-on-delete",
    "partial-update.remove-record-on-sequence-group",
    "aggregation.remove-record-on-delete",
)


@frozen
class MergeRules:
    """What a merge needs of the rows, and what it makes of them."""

    schema: TableSchema

    @property
    def needed(self) -> tuple[str, ...]:
        """Columns that decide: keys, and those that order the rows of a key."""
        return (*self.schema.primary_keys, *sequence_fields(self.schema))

    @property
    def takes_deletes(self) -> bool:
        """Whether rows that delete may occur, or are passed over."""
        engine = self.schema.merge_engine
        return engine in (MergeEngine.DEDUPLICATE, MergeEngine.FIRST_ROW) or self._ignores_deletes

    @property
    def _ignores_deletes(self) -> bool:
        engine = self.schema.merge_engine
        names = ("ignore-delete", f"{engine.value}.ignore-delete")
        return engine is MergeEngine.FIRST_ROW or any(map(self.schema.is_enabled, names))

    def sql(self, rows: str, columns: Sequence[str]) -> str:
        """The merged rows of a relation, with these columns."""
        inserts = f"{quoted(KIND)} IN {INSERT_KINDS}"
        source = f"(FROM {rows} WHERE {inserts})" if self._ignores_deletes else rows
        keys = ", ".join(map(quoted, self.schema.primary_keys))
        if self.schema.merge_engine in (MergeEngine.DEDUPLICATE, MergeEngine.FIRST_ROW):
            chosen = ", ".join(map(quoted, columns))
            newest = self.schema.merge_engine is MergeEngine.DEDUPLICATE
            order = ", ".join(_order(self.schema, newest_first=newest))
            return (
                f"SELECT {chosen} FROM {source} QUALIFY "
                f"row_number() OVER (PARTITION BY {keys} ORDER BY {order}) = 1 "
                f"AND {inserts}"
            )
        order = ", ".join(_order(self.schema, newest_first=False))
        merged = ", ".join(self._merged(name, order) for name in columns)
        return f"SELECT {merged} FROM {source} GROUP BY {keys}"

    def _merged(self, name: str, order: str) -> str:
        column = quoted(name)
        if name in self.schema.primary_keys:
            return column
        form = _AGGREGATES[_function(self.schema, name)]
        merged = form.format(column=column, order=order, type=_sum_type(self.schema, name))
        return f"{merged} AS {column}"


def merge_rules(schema: TableSchema) -> MergeRules:
    """The rules of a table; refuses, by name, options that are not known here."""
    options = schema.options
    for name in _REFUSED:
        if schema.is_enabled(name):
            raise _unknown(name, options[name])
    if schema.merge_engine is MergeEngine.PARTIAL_UPDATE:
        for name, value in options.items():
            if name.startswith("fields.") and name.endswith(
                (".sequence-group", ".aggregate-function")
            ):
                raise _unknown(name, value)
    if schema.merge_engine is MergeEngine.AGGREGATE:
        for field in schema.fields:
            function = _function(schema, field.name)
            if function not in _AGGREGATES:
                raise _unknown(f"fields.{field.name}.aggregate-function", function)
            if schema.is_enabled(f"fields.{field.name}.distinct"):
                raise _unknown(f"fields.{field.name}.distinct", "true")
    return MergeRules(schema=schema)


def _unknown(option: str, value: str) -> Unsupported:
    return Unsupported(
        f"option {option} is {value!r}: its rows can be merged only by Paimon; run a full "
        "compaction there (CALL sys.compact with compact_strategy => 'full')",
        feature="paimon-merge",
    )


def sequence_fields(schema: TableSchema) -> tuple[str, ...]:
    """The user's columns that say which row of a key is newer."""
    names = (name.strip() for name in schema.options.get("sequence.field", "").split(","))
    return tuple(name for name in names if name)


def _function(schema: TableSchema, name: str) -> str:
    if schema.merge_engine is not MergeEngine.AGGREGATE:
        return _NEWEST
    if name in sequence_fields(schema):
        return "last_value"
    default = schema.options.get("fields.default-aggregate-function", _NEWEST)
    return schema.options.get(f"fields.{name}.aggregate-function", default)


def _sum_type(schema: TableSchema, name: str) -> str:
    """The type of a column, in which its sum is kept. Only numbers are summed."""
    type_ = schema.field(name).type
    if type_.name is TypeName.DECIMAL:
        return f"DECIMAL({type_.precision}, {type_.scale})"
    return "INTEGER" if type_.name in (TypeName.TINYINT, TypeName.SMALLINT) else type_.name.value


def _order(schema: TableSchema, *, newest_first: bool) -> Iterator[str]:
    """Which of the rows of a key comes first; rows without a sequence are the oldest."""
    is_ascending = schema.options.get("sequence.field.sort-order", "ascending") == "ascending"
    fields = () if schema.merge_engine is MergeEngine.FIRST_ROW else sequence_fields(schema)
    for name in fields:
        direction = "DESC" if newest_first == is_ascending else "ASC"
        yield f"{quoted(name)} {direction} NULLS {'LAST' if newest_first else 'FIRST'}"
    yield f"{quoted(SEQUENCE)} {'DESC' if newest_first else 'ASC'}"


_SYSTEM: Final = pa.schema([(SEQUENCE, pa.int64()), (KIND, pa.int32())])


@frozen(eq=False)
class KeyedFile:
    """A primary-key file, and the positions of its deleted rows."""

    source: DataFileSlice
    dropped: Positions | None = None


def keyed_rows(files: Sequence[KeyedFile], reading: Reading) -> pa.Table:
    """All rows of the files in the columns of `reading.schema`, sequence number and row kind."""
    tables = [_keyed(file, reading) for file in files]
    return pa.concat_tables(tables) if tables else _schema(reading).empty_table()


def _schema(reading: Reading) -> pa.Schema:
    return pa.schema([*arrow_schema(reading.schema), *_SYSTEM])


def _keyed(file: KeyedFile, reading: Reading) -> pa.Table:
    batches = list(read_file(file.source, reading, dropped=file.dropped))
    rows = pa.Table.from_batches(batches, schema=arrow_schema(reading.schema))
    system = _system(file, reading)
    if system.num_rows != rows.num_rows:
        raise FormatError(
            f"has {rows.num_rows} rows and {system.num_rows} sequence numbers",
            path=file.source.path,
        )
    for column in _SYSTEM:
        rows = rows.append_column(column, system[column.name])
    return rows


def _system(file: KeyedFile, reading: Reading) -> pa.Table:
    path = file.source.path
    try:
        with reading.storage.open(path).arrow() as source:
            is_orc = file.source.file_format == "orc"
            opened = orc.ORCFile(source) if is_orc else pq.ParquetFile(source)
            table = opened.read(columns=_SYSTEM.names).select(_SYSTEM.names).cast(_SYSTEM)
    except (pa.ArrowException, KeyError, OSError) as error:
        raise FormatError(f"has no rows of a primary-key table: {error}", path=path) from error
    if file.dropped is None or not len(file.dropped):
        return table
    return table.filter(pa.array(live_mask(table.num_rows, file.dropped)))


def live_mask(count: int, dropped: Positions) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which of `count` rows are left."""
    mask = np.ones(count, dtype=np.bool_)
    mask[dropped] = False
    return mask
