"""Updates as changes that write column files: all of a plan's files, or those where it is less."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil.commit.change import Change
from frazil.data.projection import file_fields
from frazil.data.read.sources import ParquetSource, open_source
from frazil.data.schema import arrow_schema
from frazil.data.write.row_input import Rows, row_reader, schema_of
from frazil.errors import InvalidInput, Unsupported
from frazil.filter.text.sql_text import ROWS, Expression, SqlText, columns_of_schema, sql_text
from frazil.format.metadata.metadata import TableMetadata
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import NestedField
from frazil.properties.registry import NAME_MAPPING
from frazil.rows.columns.column_functions import Called, Function, called
from frazil.rows.columns.column_sink import ColumnSink, UpdatedFile, refusal
from frazil.rows.engine import Assignments, ColumnEngine, Engine
from frazil.rows.planned import Planned
from frazil.scan.tasks import Task
from frazil.storage import Storage
from frazil.value_classes import replace

if TYPE_CHECKING:
    from frazil.rows.editor import RowEditor
    from frazil.rows.scan import Scan

_MIN_ROWS: Final = 0.5
"""Share of a file's rows from which on its columns are written instead of its rows."""
_MAX_BYTES: Final = 0.5
"""Share of a file's bytes that its columns may have then."""


def assigned_columns(editor: RowEditor, planned: Planned, values: Assignments) -> Change:
    """An update of a plan's rows by column files."""
    fields = tuple(editor.metadata.schema().find_field(name) for name in assigned_names(values))
    sink = _sink(editor, planned, fields)
    return updated_columns(editor.branch, planned, _engine(editor).computed(planned, values, sink))


def assigned_names(values: Mapping[tuple[str, ...], Any]) -> list[str]:
    """The columns that an update gives values to, or to a part of."""
    return list(dict.fromkeys(path[0] for path in values))


def _engine(editor: RowEditor) -> ColumnEngine:
    engine = editor.engine
    if not isinstance(engine, ColumnEngine):
        raise Unsupported(
            f"{type(engine).__name__} computes rows, not columns; update with mode='rows'",
            feature=f"column updates by {type(engine).__name__}",
        )
    return engine


def _sink(editor: RowEditor, planned: Planned, fields: Sequence[NestedField]) -> ColumnSink:
    return ColumnSink.of(
        planned, fields, handle=editor.handle, metadata=editor.metadata, written=editor.written
    )


def updated_columns(branch: str, planned: Planned, *updates: Sequence[UpdatedFile]) -> Change:
    """New values of columns as a change: those of several updates of the same files."""
    return Change(
        branch=branch,
        base_snapshot_id=planned.base_snapshot_id,
        columns=tuple(file.edit for files in updates for file in files),
        rows_in_place=max(sum(file.rows for file in files) for files in updates),
    )


# Which files


def cheaper_by_columns(
    planned: Planned,
    metadata: TableMetadata,
    paths: Iterable[tuple[str, ...]],
    touched: Callable[[], npt.NDArray[np.int64]],
) -> npt.NDArray[np.bool_]:
    """Files of which an update touches at least half of the rows and less than half of the bytes,
    as their footers tell; `touched` counts the rows of each file. Parts of structs are updated with
    their rows."""
    none = np.zeros(planned.num_files, dtype=np.bool_)
    paths_list = list(paths)
    fields = [metadata.schema().find_field(path[0]) for path in paths_list]
    if (
        any(len(path) > 1 for path in paths_list)
        or refusal(metadata, fields) is not None
        or NAME_MAPPING.key in metadata.properties
        or not planned.num_files
    ):
        return none
    mask = touched() / np.maximum(planned.records, 1) >= _MIN_ROWS
    mask[list(planned.plan.matches)] = False
    ids = {column.field_id for column in fields}
    rows = np.flatnonzero(mask)
    handle = planned.scan._handle
    shares = handle.reader().map(
        planned.tasks(rows), lambda task: _byte_share(handle.storage, task, ids)
    )
    mask[rows] = np.array(list(shares)) < _MAX_BYTES
    return mask


def rows_touched(engine: Engine, planned: Planned) -> npt.NDArray[np.int64]:
    """How many rows of each file a scan's condition holds for."""
    if planned.scan.condition.is_everything:
        return planned.records
    counts = np.zeros(planned.num_files, dtype=np.int64)
    for row, positions in planned.located(engine.matching(planned)):
        counts[row] = len(positions)
    return counts


def _byte_share(storage: Storage, task: Task, ids: set[int]) -> float:
    """The share of columns in a file's bytes; more than all where it cannot be told."""
    opened = open_source(storage, task.source)
    if not isinstance(opened, ParquetSource):
        return 2.0
    fields = file_fields(opened.schema)
    leaves = {leaf for column in fields if column.field_id in ids for leaf in column.leaves}
    chosen = every = 0
    for at in range(opened.footer.num_row_groups):
        group = opened.footer.row_group(at)
        for leaf in range(group.num_columns):
            size = group.column(leaf).total_compressed_size
            every += size
            chosen += size if leaf in leaves else 0
    return chosen / max(every, 1)


# New columns


def whole_table(editor: RowEditor) -> Planned:
    """Every row of the table as the editor sees it."""
    return Planned.of(editor.scan(None, None))


def new_columns(
    editor: RowEditor,
    columns: Mapping[str, str | Expression | Function],
    read_columns: Sequence[str] | None,
) -> Schema:
    """The columns that expressions and functions give, with their types. A function is called on
    one row for it, or on none in an empty table."""
    texts = expressions(editor, columns)
    functions = {name: value for name, value in columns.items() if callable(value)}
    fields: dict[str, NestedField] = {}
    if texts:
        engine = _engine(editor)
        fields |= {f.name: f for f in engine.types(whole_table(editor), texts).fields}
    if functions:
        scan = editor.scan(None, None if read_columns is None else list(read_columns))
        fields |= sampled(scan, functions)
    return Schema(
        *(replace(fields[name], field_id=at, required=False) for at, name in enumerate(columns, 1))
    )


def sampled(scan: Scan, functions: Mapping[str, Function]) -> dict[str, NestedField]:
    """The columns that functions give, as they say of the first row of a scan, or of none."""
    table = replace(scan, max_rows=1).to_arrow().combine_chunks()
    batches = table.to_batches() or [
        pa.RecordBatch.from_pylist([], schema=arrow_schema(scan.read_schema))
    ]
    sample = pa.table({name: called(name, f, batches[0]) for name, f in functions.items()})
    return {column.name: column for column in schema_of(sample).fields}


def expressions(
    editor: RowEditor, columns: Mapping[str, str | Expression | Function]
) -> dict[str, SqlText]:
    """Those of new columns that are SQL, judged on the table's columns."""
    scopes = {ROWS.name: columns_of_schema(editor.metadata.schema())}
    return {
        name: sql_text(value, scopes, what=f"expression for {name}")
        for name, value in columns.items()
        if isinstance(value, str | Expression)
    }


def filled(
    editor: RowEditor,
    texts: Mapping[str, SqlText],
    functions: Mapping[str, Function],
    read_columns: Sequence[str] | None,
) -> Change:
    """Columns of every row computed from expressions, which were judged before, and functions."""
    schema = editor.metadata.schema()
    planned = whole_table(editor)
    engine = _engine(editor)
    updates: list[Sequence[UpdatedFile]] = []
    if texts:
        sink = _sink(editor, planned, [schema.find_field(name) for name in texts])
        values: Assignments = {(name,): text for name, text in texts.items()}
        updates.append(engine.computed(planned, values, sink))
    if functions:
        sink = _sink(editor, planned, [schema.find_field(name) for name in functions])
        names = read_columns
        if names is None:
            names = [c.name for c in schema.fields if c.name not in {*texts, *functions}]
        read_schema = editor.scan(None, list(names)).read_schema
        updates.append(engine.called(planned, Called(functions, read_schema), sink))
    return updated_columns(editor.branch, planned, *updates)


# Values by key


def merged(editor: RowEditor, rows: Rows, on: Sequence[str]) -> Change:
    """Columns of the rows that a frame has a key of."""
    schema = editor.metadata.schema()
    stream = row_reader(rows, schema)
    names = stream.schema.names
    lacking = [name for name in on if name not in names]
    fields = tuple(schema.find_field(name) for name in names if name not in on)
    if lacking or not fields:
        raise InvalidInput(
            f"the rows have no key column {', '.join(lacking)}; they have {', '.join(names)}"
            if lacking
            else "the rows have no column besides the key columns"
        )
    with closing(editor.engine.source(stream, schema)) as source:
        planned = whole_table(editor)
        sink = _sink(editor, planned, fields)
        return updated_columns(
            editor.branch, planned, _engine(editor).joined(planned, source, on, sink)
        )


__all__ = [
    "Function",
    "assigned_columns",
    "assigned_names",
    "cheaper_by_columns",
    "expressions",
    "filled",
    "merged",
    "new_columns",
    "rows_touched",
    "sampled",
    "updated_columns",
]
