"""A planned scan as a lazy DuckDB relation: DuckDB's own Parquet reader does the reading.

Files fall into three groups, joined by UNION ALL. Untouched Parquet files are read as they are;
of those with deleted rows, `duckdb_deleted` passes over the positions; what DuckDB would read
wrongly (`duckdb_types.is_native`, files without field ids, equality deletes) comes from Frazil's
reader as an Arrow stream. Columns go by field id. A file is known by `file_index`, its number in
the list: `filename` is not what metadata calls it.
"""

from __future__ import annotations

import os
import re
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import NestedField

from frazil import errors
from frazil.data import verified
from frazil.data.lineage import LINEAGE_IDS
from frazil.data.metadata_columns import (
    FILE,
    LAST_UPDATED,
    PARTITION_ID,
    POS,
    RESERVED_IDS,
    ROW_ID,
    SPEC_ID,
)
from frazil.data.read_files import NAME_MAPPING
from frazil.data.schema import nested_arrow_type
from frazil.errors import FormatError, FrazilError, InvalidInput, StorageError
from frazil.expr.quotes import quoted
from frazil.expr.sql_text import TARGET
from frazil.format import paths
from frazil.format.fields import stats_key
from frazil.format.types import arrow_type, is_floating
from frazil.rows import duckdb_deleted, duckdb_filter
from frazil.rows.actions import KEY
from frazil.rows.duckdb_types import check_columns, default_text, is_native, text, type_text
from frazil.rows.planned import Longs, Planned
from frazil.rows.streamed_tasks import StreamedTasks
from frazil.scan.tasks import Task, TaskReader
from frazil.storage import is_local, local_path

if TYPE_CHECKING:
    import duckdb

    from frazil.rows.storage_files import StorageFiles

FILE_INDEX: Final = "__frazil_file"
"""Column with the number of a row's file in the plan."""
ROW_NUMBER: Final = "__frazil_row"
_LONG: Final = 2_000
"""Characters of a query; a sum of 200 columns is planned in 0.2 s."""
_MOST_INLINE: Final = 32
"""Files; more are bound faster from a variable."""
_ERROR: Final = re.compile(r"([A-Z][A-Za-z ]*) Error: ")
_INNER: Final = re.compile(
    r"get_next failed\(\): .*?: Unknown error: (.*?)\. Detail: Python exception: .*"
    r"frazil\.errors\.(\w+): ",
    re.DOTALL,
)
_PATTERN: Final = re.compile(r"[*?\[]")


def connect(**config: Any) -> duckdb.DuckDBPyConnection:
    """A DuckDB connection in memory, set as Frazil needs it, as are all cursors of it."""
    import duckdb

    folder = os.path.join(tempfile.gettempdir(), f"frazil-{os.getpid()}")
    settings = {"temp_directory": folder, "arrow_lossless_conversion": "true", **config}
    made = duckdb.connect(config=settings)
    made.execute("SET GLOBAL TimeZone = 'UTC'")
    return made


@contextmanager
def streaming(connection: duckdb.DuckDBPyConnection, query: str) -> Iterator[None]:
    """Settings for a query whose rows become Arrow batches; they are as before afterwards.

    A batch may hold more than 2 GiB of text. A long query is planned without looking for common
    subexpressions: that takes time with the cube of an expression's length, 11 s for a sum of 800
    columns. Read all rows inside: DuckDB ends a stream when the next statement runs.
    """
    import duckdb

    wanted = {"arrow_large_buffer_size": "true"}
    if len(query) > _LONG:
        wanted["disabled_optimizers"] = "common_subexpressions"
    before = {name: _setting(connection, name) for name in wanted}
    before = {name: value for name, value in before.items() if value != wanted[name]}
    try:
        for name in before:
            connection.execute(f"SET {name} = {text(wanted[name])}")
    except duckdb.Error:  # the settings of a connection that was given may be locked
        yield
        return
    try:
        yield
    finally:
        with suppress(duckdb.Error):  # a transaction of the connection's owner may be aborted
            for name, value in before.items():
                connection.execute(f"SET {name} = {text(value)}")


def _setting(connection: duckdb.DuckDBPyConnection, name: str) -> str:
    ((value,),) = connection.execute(f"SELECT current_setting('{name}')::VARCHAR").fetchall()
    return str(value)


@contextmanager
def explained(what: str) -> Iterator[None]:
    """DuckDB's errors as ours: most say that an expression is wrong."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        raise _told(what, error, duckdb_kind(error)) from error
    except OSError as error:
        if (kind := duckdb_kind(error)) is None:
            raise
        raise _told(what, error, kind) from error


def duckdb_kind(error: Exception) -> type[FrazilError] | None:
    """The error of ours that one of DuckDB is; None for those of others.

    What DuckDB finds wrong in the middle of an Arrow stream arrives as an OSError with its text.
    """
    import duckdb

    found = _ERROR.match(str(error))
    if not isinstance(error, duckdb.Error) and found is None:
        return None
    if (inner := _INNER.search(str(error))) is not None:
        kind = getattr(errors, inner[2], None)
        return kind if isinstance(kind, type) and issubclass(kind, FrazilError) else FormatError
    name = "" if found is None else found[1]
    if "No magic bytes found" in str(error):
        return FormatError
    if name in ("IO", "HTTP") or isinstance(error, duckdb.IOException | duckdb.HTTPException):
        return StorageError
    if name == "Out of Memory" or isinstance(error, duckdb.OutOfMemoryException):
        return FrazilError
    return InvalidInput


def duckdb_problem(error: Exception) -> str:
    """What DuckDB says; of an error in rows that Frazil's reader gave it, what that one said."""
    inner = _INNER.search(str(error))
    return str(error).split("\n\nLINE ")[0] if inner is None else inner[1]


def _told(what: str, error: Exception, kind: type[FrazilError] | None) -> FrazilError:
    problem = duckdb_problem(error).replace("\n", " ")
    if kind is FrazilError:
        problem += " Raise the engine's memory limit"
    return (kind or InvalidInput)(f"{what}: {problem}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RawRows:
    """Rows as files hold them, deleted ones too, for a join that few of them pass: what metadata
    says of a row is found for those that are left, by the columns `FILE_INDEX` and `ROW_NUMBER`.
    """

    rows: str
    deleted: Mapping[int, Longs]
    """Positions of deleted rows by file."""
    bounds: Mapping[str, tuple[pa.Scalar, pa.Scalar]]
    """The least and the greatest value of columns, where known."""

    def deleted_rows(self) -> pa.Table:
        """The same as a table of files and positions."""
        return _dead_rows(list(self.deleted), list(self.deleted.values()))


@dataclass(slots=True)
class ScanSql:
    """A SELECT, and what it refers to on its connection."""

    text: str = ""
    relations: dict[str, Any] = field(default_factory=dict)
    num_files: int = 0
    """How many files DuckDB reads."""
    variables: dict[str, list[str]] = field(default_factory=dict)
    bitmaps: dict[str, bytes] = field(default_factory=dict)
    """Variables of type BIT."""
    files: StorageFiles | None = None
    raw: RawRows | None = None
    unverified: Callable[[int | None], int] | None = None

    def verify(self, *, most_bytes: int | None = None) -> None:
        """Refuse damaged files: DuckDB does not look at checksums. See `verified.verify`."""
        if self.unverified is not None:
            self.unverified(most_bytes)

    def bind(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Make the connection know everything the text names."""
        if self.files is not None:
            connection.register_filesystem(self.files)
        for name, relation in self.relations.items():
            connection.register(name, relation)
        for name, values in self.variables.items():
            connection.execute(f"SET VARIABLE {name} = ?", [values])
        for name, bits in self.bitmaps.items():
            connection.execute(f"SET VARIABLE {name} = CAST(CAST(? AS BLOB) AS BIT)", [bits])

    def create_view(self, connection: duckdb.DuckDBPyConnection, name: str) -> None:
        """Give the rows a name, once they are bound."""
        connection.execute(f"CREATE OR REPLACE TEMP VIEW {quoted(name)} AS {self.text}")

    def release(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Make the connection forget it."""
        for name in self.relations:
            connection.unregister(name)
        for name in (*self.variables, *self.bitmaps):
            connection.execute(f"RESET VARIABLE {name}")
        self.release_files(connection)

    def release_files(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Make the connection's database forget what would stay when the connection is closed."""
        if self.files is not None:
            connection.execute("SELECT 1")  # ends a query that was not read to its end
            connection.unregister_filesystem(self.files.protocol)


def scan_sql(
    planned: Planned,
    *,
    filtered: bool = True,
    key: bool = False,
    raw: bool = False,
    inline: bool = False,
) -> ScanSql:
    """The rows of a scan as a SELECT of the scan's columns.

    With `key`, the column `KEY` tells each row's number in the plan. Unless `filtered`, the rows of
    all files planned are given, whether they match the scan's filter or not. Before rows are read,
    `verify` is called: up to `verified.QUERY_BYTES`, or for all files when the rows are written
    again, as damage would be written with them.

    With `raw`, the rows of all files are given as `RawRows` instead where DuckDB can read every
    file itself; the text is empty then.

    With `inline`, the paths of a few files are part of the text: to set a variable takes longer.
    """
    most = _MOST_INLINE if inline else 0
    return _ScanSql(planned, filtered=filtered, key=key, raw=raw, most_inline=most).build()


_NONE: Final = np.zeros(0, dtype=np.int64)
_FROM_METADATA: Final = frozenset(
    {PARTITION_ID, *(column.field_id for column in (FILE, SPEC_ID, ROW_ID, LAST_UPDATED))}
)


@dataclass(frozen=True, slots=True)
class _Group:
    """Files that are read by one call."""

    name: str
    touched: bool = False
    has_nan: bool = False


class _ScanSql:
    def __init__(
        self,
        planned: Planned,
        *,
        filtered: bool,
        key: bool,
        raw: bool,
        most_inline: int,
    ) -> None:
        self._planned = planned
        self._most_inline = most_inline
        self._scan = planned.scan
        self._key = key
        self._raw = raw
        self._filtered = filtered and not self._scan.condition.is_everything
        self._wanted = planned.wanted if self._filtered else self._scan.schema
        check_columns(self._wanted.fields)
        self._prefix = f"__frazil_{uuid.uuid4().hex[:12]}"
        self._out = ScanSql()
        self._reader = TaskReader(replace(planned.reading(), schema=self._wanted))

    def build(self) -> ScanSql:
        planned = self._planned
        native = self._native_files()
        if self._reader.reading.verify_checksums:
            sizes = planned.plan.files.numpy("file_size_in_bytes").tolist()
            files = [(planned.paths[row], sizes[row]) for row in np.flatnonzero(native)]
            storage = self._scan._handle.storage
            self._out.unverified = lambda most: verified.verify(storage, files, most_bytes=most)
        dead = self._dead(np.flatnonzero(native))
        touched = np.isin(np.arange(planned.num_files), list(dead))
        has_nan = self._may_have_nan()
        groups = [
            (native & ~touched & ~has_nan, _Group("clean")),
            (native & touched & ~has_nan, _Group("touched", touched=True)),
            (native & ~touched & has_nan, _Group("clean_nan", has_nan=True)),
            (native & touched & has_nan, _Group("touched_nan", touched=True, has_nan=True)),
        ]
        if self._raw and native.all() and len(native):
            whole = _Group("raw", touched=bool(dead), has_nan=bool(has_nan.any()))
            self._out.raw = self._raw_rows(whole, dead)
            return self._out
        parts = [
            self._parquet(np.flatnonzero(mask), group, dead) for mask, group in groups if mask.any()
        ]
        others = np.flatnonzero(~native)
        if len(others):
            parts.append(self._arrow(others))
        if not parts:
            parts.append(self._nothing())
        self._out.text = self._outer(" UNION ALL ".join(parts))
        return self._out

    def _outer(self, inner: str) -> str:
        """The scan's own columns, filter and limit around its rows."""
        scan = self._scan
        if not self._filtered and scan.max_rows is None:
            return inner
        names = [quoted(column.name) for column in scan.schema.fields]
        chosen = ", ".join([*names, *([KEY] if self._key else [])])
        where = f" WHERE {duckdb_filter.matching(scan.condition)}" if self._filtered else ""
        limit = "" if scan.max_rows is None else f" LIMIT {scan.max_rows}"
        return f"SELECT {chosen} FROM ({inner}) {TARGET}{where}{limit}"

    # Which files go which way

    def _native_files(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        files, metadata = self._planned.plan.files, self._scan._handle.metadata
        wanted = self._wanted.fields
        if NAME_MAPPING in metadata.properties or not all(
            is_native(column, metadata.schemas) for column in wanted
        ):
            return np.zeros(files.num_rows, dtype=np.bool_)
        mask = np.array([kind.lower() == "parquet" for kind in files.pylist("file_format")], bool)
        for row in self._planned.plan.matches:
            if any(delete.equality_ids for delete in self._task(row).deletes):
                mask[row] = False
        if self._identity_ids() & {column.field_id for column in wanted}:
            # Files from elsewhere may leave out columns whose value their partition tells.
            mask &= ~np.array([paths.is_absolute(name) for name in files.pylist("location")], bool)
        return mask

    def _identity_ids(self) -> set[int]:
        return {
            part.source_id
            for spec in self._scan._handle.metadata.partition_specs
            for part in spec.fields
            if isinstance(part.transform, IdentityTransform)
        }

    def _may_have_nan(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Files with a NaN in a column, or where metadata does not say that there is none."""
        files = self._planned.plan.files
        found = np.zeros(files.num_rows, dtype=np.bool_)
        for column in self._wanted.fields:
            if is_floating(column.field_type):
                found |= files.numpy(stats_key(column.field_id, "nan_value_count")) != 0
        return found

    def _dead(self, rows: np.ndarray[Any, Any]) -> dict[int, Longs]:
        """Deleted positions by file, for files that have any."""
        planned = self._planned
        suspects = [
            int(row) for row in rows if planned.has_vector[row] or int(row) in planned.plan.matches
        ]
        tasks = planned.tasks(np.array(suspects, dtype=np.intp)) if suspects else []
        found = self._scan._handle.reader().each(tasks, self._reader.dropped)
        return {
            row: positions
            for row, positions in zip(suspects, found, strict=True)
            if positions is not None and len(positions)
        }

    def _task(self, row: int) -> Task:
        return self._planned.tasks(np.array([row], dtype=np.intp))[0]

    # Files that DuckDB reads

    def _parquet(self, rows: np.ndarray[Any, Any], group: _Group, dead: dict[int, Longs]) -> str:
        wanted, name = self._wanted.fields, group.name
        outputs = [f"{_output(column, group)} AS {quoted(column.name)}" for column in wanted]
        if self._key:
            outputs.append(f"i.base + r.file_row_number AS {KEY}")
        joins = ""
        if any(column.field_id in _FROM_METADATA for column in wanted) or self._key:
            joins += self._file_join(rows, f"{self._prefix}_{name}_files")
        where, times = "", 1
        if group.touched:
            found = self._undeleted(rows, f"{self._prefix}_{name}_bits", dead)
            if found is None:
                joins += self._dead_join(rows, f"{self._prefix}_{name}_dead", dead)
            else:
                where, times = f" WHERE {found}", duckdb_deleted.ESTIMATE
        source = self._read_parquet(rows, f"{self._prefix}_{name}", times)
        return f"SELECT {', '.join(outputs)} FROM {source} r{joins}{where}"

    def _raw_rows(self, group: _Group, dead: dict[int, Longs]) -> RawRows:
        columns = {column.name: _output(column, group) for column in self._wanted.fields}
        columns |= {ROW_ID.name: f"r.c{ROW_ID.field_id}"} if ROW_ID.name in columns else {}
        columns |= {FILE_INDEX: "r.file_index", ROW_NUMBER: "r.file_row_number"}
        outputs = [f"{value} AS {quoted(name)}" for name, value in columns.items()]
        every = np.arange(self._planned.num_files)
        source = self._read_parquet(every, f"{self._prefix}_{group.name}", 1)
        bounds = {
            column.name: found
            for column in self._wanted.fields
            if (found := self._planned.bounds(column)) is not None
        }
        rows = f"SELECT {', '.join(outputs)} FROM {source} r"
        return RawRows(rows=rows, deleted=dead, bounds=bounds)

    def _stored(self) -> list[NestedField]:
        """Columns that are read from files."""
        return [
            column
            for column in self._wanted.fields
            if column.field_id not in RESERVED_IDS or column.field_id in LINEAGE_IDS
        ] or [ROW_ID]

    def _read_parquet(self, rows: np.ndarray[Any, Any], variable: str, times: int) -> str:
        columns = ", ".join(
            f"{column.field_id}: {{name: 'c{column.field_id}', "
            f"type: {text(type_text(column.field_type))}, default_value: {default_text(column)}}}"
            for column in self._stored()
        )
        files = self._addresses(rows)
        self._out.num_files += len(files)
        if len(files) <= self._most_inline:
            listed = f"[{', '.join(map(text, files))}]"
        else:
            self._out.variables[variable], listed = files, f"getvariable('{variable}')"
        count = max(1, int(self._planned.records[rows].sum()) * times)
        return f"read_parquet({listed}, schema=MAP {{{columns}}}, explicit_cardinality={count})"

    def _addresses(self, rows: np.ndarray[Any, Any]) -> list[str]:
        """Paths as DuckDB takes them: local ones are patterns, others go through the storage."""
        found = [self._planned.paths[row] for row in rows]
        if all(is_local(path) for path in found):
            return [_escaped(local_path(path)) for path in found]
        from frazil.rows.storage_files import StorageFiles

        if self._out.files is None:
            sizes = self._planned.plan.files.numpy("file_size_in_bytes").tolist()
            known = dict(zip(self._planned.paths, sizes, strict=True))
            protocol = self._prefix.strip("_").replace("_", "")
            self._out.files = StorageFiles(self._scan._handle.storage, known, protocol)
        return [self._out.files.address(path) for path in found]

    def _file_join(self, rows: np.ndarray[Any, Any], name: str) -> str:
        """What metadata says of each file, by its number in the list."""
        planned = self._planned
        files = planned.plan.files.take(rows)
        first = files.column("tracking.first_row_id")
        sequence = files.column("tracking.sequence_number")
        columns: dict[str, Any] = {
            "file_index": pa.array(np.arange(len(rows), dtype=np.uint64)),
            "base": pa.array(planned.bases[rows]),
            "path": pa.array([planned.paths[row] for row in rows], pa.string()),
            "first_row_id": first,
            "sequence": pa.array(
                [
                    number if start is not None else None
                    for number, start in zip(sequence.to_pylist(), first.to_pylist(), strict=True)
                ],
                pa.int64(),
            ),
            "spec_id": files.column("spec_id"),
        }
        for column in self._wanted.fields:
            if column.field_id == PARTITION_ID:
                columns["part"] = self._partitions(rows, column)
        self._out.relations[name] = pa.table(columns)
        return f" JOIN {name} i ON i.file_index = r.file_index"

    def _partitions(self, rows: np.ndarray[Any, Any], column: NestedField) -> pa.Array:
        parts = getattr(column.field_type, "fields", ())
        values = [
            {
                part.name: None
                if task.source.partition.get(part.field_id) is None
                else pa.scalar(task.source.partition[part.field_id], arrow_type(part.field_type))
                for part in parts
            }
            for task in self._planned.tasks(rows)
        ]
        return pa.array(values, nested_arrow_type(column.field_type))

    def _undeleted(
        self, rows: np.ndarray[Any, Any], name: str, dead: dict[int, Longs]
    ) -> str | None:
        """A condition for rows that are not deleted; None where a join is used instead."""
        positions = [dead.get(int(row), _NONE).astype(np.int64) for row in rows]
        found = duckdb_deleted.undeleted(positions, self._planned.records[rows].tolist(), name)
        if found is None:
            return None
        self._out.bitmaps.update(found.bitmaps)
        return found.condition

    def _dead_join(self, rows: np.ndarray[Any, Any], name: str, dead: dict[int, Longs]) -> str:
        positions = [dead.get(int(row), _NONE) for row in rows]
        self._out.relations[name] = _dead_rows(range(len(rows)), positions)
        return f" ANTI JOIN {name} d ON d.f = r.file_index AND d.p = r.file_row_number"

    # Files that Frazil reads

    def _arrow(self, rows: np.ndarray[Any, Any]) -> str:
        name = f"{self._prefix}_arrow"
        bases = self._planned.bases[rows] if self._key else None
        self._out.relations[name] = StreamedTasks(self._reader, self._planned.tasks(rows), bases)
        # DuckDB hands filters on plain columns to Arrow, for which NaN is not above all numbers.
        outputs = [
            f"CASE WHEN {quoted(column.name)} IS NULL THEN NULL ELSE "
            f"CAST({quoted(column.name)} AS {type_text(column.field_type)}) END AS "
            f"{quoted(column.name)}"
            for column in self._wanted.fields
        ]
        return f"SELECT {', '.join([*outputs, *([KEY] if self._key else [])])} FROM {name}"

    def _nothing(self) -> str:
        outputs = [
            f"CAST(NULL AS {type_text(column.field_type)}) AS {quoted(column.name)}"
            for column in self._wanted.fields
        ]
        if self._key:
            outputs.append(f"CAST(NULL AS BIGINT) AS {KEY}")
        return f"SELECT {', '.join(outputs)} WHERE false"


def _output(column: NestedField, group: _Group) -> str:
    stored = f"r.c{column.field_id}"
    if group.has_nan and is_floating(column.field_type):
        # Statistics in Parquet files leave NaN out, and DuckDB, for which it is greater than every
        # number, skips row groups by them. It does not see through this expression.
        return f"CASE WHEN {stored} IS NULL THEN NULL ELSE {stored} END"
    match column.field_id:
        case POS.field_id:
            return "r.file_row_number"
        case FILE.field_id:
            return "i.path"
        case SPEC_ID.field_id:
            return "i.spec_id"
        case _ if column.field_id == PARTITION_ID:
            return "i.part"
        case ROW_ID.field_id:
            return f"coalesce({stored}, i.first_row_id + r.file_row_number)"
        case LAST_UPDATED.field_id:
            return f"coalesce({stored}, i.sequence)"
    return stored


def _dead_rows(files: Sequence[int], positions: Sequence[Longs]) -> pa.Table:
    numbers = np.repeat(np.array(files, dtype=np.uint64), [len(each) for each in positions])
    return pa.table({"f": numbers, "p": np.concatenate(positions).astype(np.int64)})


def _escaped(path: str) -> str:
    """A path that matches itself alone: `b[x].parquet` would read the file `bx.parquet`."""
    return _PATTERN.sub(r"[\g<0>]", path)
