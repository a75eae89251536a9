"""A planned scan as a lazy DuckDB relation: DuckDB's own Parquet reader does the reading.

Files fall into groups, joined by UNION ALL. Untouched Parquet files are read as they are; of those
with deleted rows, `duckdb_deleted` passes over the positions; columns of column files are read
where they are (`duckdb_parts`); what DuckDB would read wrongly
(`ColumnHistory.is_native`, files without field ids, equality deletes) comes from Frazil's reader as
an Arrow stream. A file is known by `file_index`, its number in the list: `filename` is not what
metadata calls it.

Columns go by field id. DuckDB takes files that it reads by ids for one row, and joins in a bad
order then. So they are read by the names that the files have for these ids: today's names if the
table's schemas never had others, else those that the files' footers tell.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from frazil import arrow_values
from frazil.data.metadata_columns import (
    FILE,
    LAST_UPDATED,
    LINEAGE_IDS,
    PARTITION_ID,
    RESERVED_IDS,
    ROW_ID,
    SPEC_ID,
)
from frazil.data.read import verified
from frazil.filter.text.quotes import quoted
from frazil.filter.text.sql_text import ROWS
from frazil.filter.text.sql_values import string_text, type_text
from frazil.format import paths
from frazil.format.entries.column_files import have_column_files
from frazil.format.metadata.statistics_files import distinct_counts
from frazil.iceberg.transforms import IdentityTransform
from frazil.iceberg.types import NestedField, VariantType
from frazil.properties.registry import NAME_MAPPING
from frazil.rows.actions import KEY
from frazil.rows.duckdb import duckdb_deleted, duckdb_filter, duckdb_shapes
from frazil.rows.duckdb.duckdb_connection import STORAGE_FILES, forget
from frazil.rows.duckdb.duckdb_group import (
    FileGroup,
    Names,
    column_names,
    file_values,
    partitions,
    typical_first,
)
from frazil.rows.duckdb.duckdb_types import ColumnHistory, check_columns, usable_names
from frazil.rows.planned import Longs, Planned
from frazil.scan.tasks import Task, TaskReader
from frazil.storage import is_local, local_path
from frazil.value_classes import dataclass, field, replace

if TYPE_CHECKING:
    import duckdb

    from frazil.rows.duckdb.duckdb_parts import NamedParts
    from frazil.rows.duckdb.storage_files import StorageFiles

FILE_INDEX: Final = "__frazil_file"
"""Column with the number of a row's file in the plan."""
ROW_NUMBER: Final = "__frazil_row"
_MAX_INLINE: Final = 32
"""Files; more are bound faster from a variable."""
_MANY_COLUMNS: Final = 16
"""From so many on, a join of files by the numbers of their rows takes little beside the reading."""
MAX_FOOTERS: Final = 4_096
"""Files of which names are asked; more are read by ids."""


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
        return duckdb_deleted.deleted_rows(list(self.deleted), list(self.deleted.values()))


@dataclass(slots=True)
class ScanSql:
    """A SELECT, and what it refers to on its connection."""

    text: str = ""
    relations: dict[str, Any] = field(default_factory=dict)
    num_files: int = 0
    """How many files DuckDB reads."""
    opened: list[tuple[str, int]] = field(default_factory=list)
    """Files that DuckDB opens to bind the text, and their sizes."""
    variables: dict[str, list[Any]] = field(default_factory=dict)
    bitmaps: dict[str, bytes] = field(default_factory=dict)
    """Variables of type BIT."""
    files: StorageFiles | None = None
    raw: RawRows | None = None
    unverified: Callable[[int | None], int] | None = None

    def verify(self, *, max_bytes: int | None = None) -> None:
        """Refuse damaged files: DuckDB does not look at checksums. See `verified.verify`."""
        if self.unverified is not None:
            self.unverified(max_bytes)

    def bind(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Make the connection know everything the text names."""
        if self.files is not None or self.relations:
            import duckdb  # noqa: F401  (it teaches connections to read them)
        duckdb_shapes.provide(connection, self.text)
        for path, size in self.opened:
            verified.sized(path, size)
        if self.files is not None:
            connection.register_filesystem(self.files)
            # DuckDB fetches files far ahead of a LIMIT; local ones take a third less time that way.
            connection.execute("SET read_ahead_depth = 0")
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
        forget(connection, self.relations)
        for name in (*self.variables, *self.bitmaps):
            connection.execute(f"RESET VARIABLE {name}")
        self.release_files(connection)

    def release_files(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Make the connection's database forget what would stay when the connection is closed."""
        if self.files is not None:
            connection.abort()  # a query that was not read to its end
            connection.unregister_filesystem(self.files.protocol)


def scan_sql(
    planned: Planned,
    *,
    filtered: bool = True,
    key: bool = False,
    raw: bool = False,
    is_joined: bool = True,
    inline: bool = False,
    whole: bool = False,
    folders: Sequence[str] | None = None,
) -> ScanSql:
    """The rows of a scan as a SELECT of the scan's columns.

    With `key`, the column `KEY` tells each row's number in the plan. Unless `filtered`, the rows of
    all files planned are given, whether they match the scan's filter or not. Before rows are read,
    `verify` is called: up to `verified.QUERY_BYTES`, or for all files when the rows are written
    again, as damage would be written with them.

    With `raw`, the rows of all files are given as `RawRows` instead where DuckDB can read every
    file itself; the text is empty then.

    Without `is_joined`, the query has no joins whose order would matter: no footer is read for it.

    With `inline`, the paths of a few files are part of the text: to set a variable takes longer.

    With `whole`, the query uses all columns of the scan, which are few. Files that were not
    verified yet are then read by Frazil, which verifies the pages of these columns alone.

    `folders` are those that the connection may open files in, if not everywhere: others are read
    through the table's storage.
    """
    max_inline = _MAX_INLINE if inline else 0
    scan = _ScanSql(
        planned,
        filtered=filtered,
        key=key,
        raw=raw,
        is_joined=is_joined,
        max_inline=max_inline,
        whole=whole,
        folders=folders,
    )
    return scan.build()


def _are_below(folders: Sequence[str], files: Sequence[str]) -> bool:
    """Whether files are in these folders or below, wherever links lead."""
    places = {os.path.dirname(file) for file in files}
    places |= {os.path.realpath(file) for file in files if os.path.islink(file)}
    return all(f"{os.path.realpath(place)}/".startswith(tuple(folders)) for place in places)


_NONE: Final = np.zeros(0, dtype=np.int64)
_VALUES_OF_FILES: Final = {
    FILE.field_id: "path",
    SPEC_ID.field_id: "spec_id",
    ROW_ID.field_id: "first_row_id",
    LAST_UPDATED.field_id: "sequence",
    PARTITION_ID: "part",
}
_Mask = np.ndarray[Any, np.dtype[np.bool_]]
_Layout = tuple[tuple[bool, tuple[int, ...], Names], ...]
"""Which columns files have, and under which names, where a data file has column files."""


class _ScanSql:
    def __init__(
        self,
        planned: Planned,
        *,
        filtered: bool,
        key: bool,
        raw: bool,
        is_joined: bool,
        max_inline: int,
        whole: bool,
        folders: Sequence[str] | None,
    ) -> None:
        self._planned = planned
        self._whole = whole
        self._folders = folders
        self._is_joined = is_joined
        self._max_inline = max_inline
        self._scan = planned.scan
        self._history = ColumnHistory(planned.scan._handle.metadata.schemas)
        self._key = key
        self._raw = raw
        self._filtered = filtered and not self._scan.condition.is_everything
        self._read_schema = planned.read_schema if self._filtered else self._scan.read_schema
        check_columns(self._read_schema.fields)
        self._parts: NamedParts = {}
        self._prefix = f"__frazil_{uuid.uuid4().hex[:12]}"
        self._out = ScanSql()
        # Rows that cannot match may be left out, as the files that were pruned are.
        pruned_by = self._scan.condition.filter
        self._reader = TaskReader(
            replace(planned.reading(), schema=self._read_schema, pruned_by=pruned_by)
        )

    def build(self) -> ScanSql:
        native = self._native_files()
        if self._reader.reading.verify_checksums:
            files = self._read_files(native)
            if self._whole:
                found = verified.unverified(chain.from_iterable(files.values()))
                for row, own in files.items():
                    native[row] = not any(path in found for path, _, _ in own)
                files = {}
            storage = self._scan._handle.storage
            every = list(chain.from_iterable(files.values()))
            self._out.unverified = lambda maximum: verified.verify(
                storage, every, max_bytes=maximum
            )
        dead = self._dead(np.flatnonzero(native))
        if self._raw and native.all() and len(native) and not self._parts:
            self._out.raw = self._raw_rows(dead)
            return self._out
        parts = [self._parquet(group, dead) for group in self._groups(native, dead)]
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
        names = [quoted(column.name) for column in scan.read_schema.fields]
        chosen = ", ".join([*names, *([KEY] if self._key else [])])
        where = f" WHERE {duckdb_filter.matching(scan.condition)}" if self._filtered else ""
        limit = "" if scan.max_rows is None else f" LIMIT {scan.max_rows}"
        return f"SELECT {chosen} FROM ({inner}) {ROWS}{where}{limit}"

    # Which files go which way

    def _native_files(self) -> _Mask:
        files, metadata = self._planned.plan.files, self._scan._handle.metadata
        columns = self._read_schema.fields
        if NAME_MAPPING.key in metadata.properties or not all(
            self._history.is_native(column) for column in columns
        ):
            return np.zeros(files.num_rows, dtype=np.bool_)
        mask = np.array([kind.lower() == "parquet" for kind in files.pylist("file_format")], bool)
        has_others = have_column_files(files)
        if has_others.any():  # Loaded here: few tables have any.
            from frazil.rows.duckdb.duckdb_parts import named_parts

            stored, names = self._stored(), self._names_by_metadata
            joins = len(stored) >= _MANY_COLUMNS or not self._scan.condition.is_everything
            self._parts = named_parts(self._planned, stored, base_names=names, joins=joins)
            has_others[list(self._parts)] = False
        mask &= ~has_others
        for row in self._planned.plan.matches:
            if any(delete.equality_ids for delete in self._task(row).deletes):
                mask[row] = False
        if self._identity_ids() & {column.field_id for column in columns}:
            # Files from elsewhere may leave out columns whose value their partition tells.
            mask &= ~np.array([paths.is_absolute(name) for name in files.pylist("location")], bool)
        return mask

    def _read_files(self, native: _Mask) -> dict[int, list[tuple[str, int, int]]]:
        """Path, size and rows of the files that DuckDB reads, by the row of the plan."""
        planned, files = self._planned, {}
        sizes = planned.plan.files.numpy("file_size_in_bytes").tolist()
        for row in np.flatnonzero(native).tolist():
            sources = [part.source for part, _ in self._parts.get(row, ())]
            files[row] = [
                (file.path, file.file_size_in_bytes, file.record_count) for file in sources
            ] or [(planned.paths[row], sizes[row], int(planned.records[row]))]
        return files

    def _identity_ids(self) -> set[int]:
        return {
            part.source_id
            for spec in self._scan._handle.metadata.partition_specs
            for part in spec.fields
            if isinstance(part.transform, IdentityTransform)
        }

    def _may_have_nan(self) -> _Mask:
        mask = np.zeros(self._planned.num_files, dtype=np.bool_)
        for column in self._read_schema.fields:
            mask |= self._planned.may_have_nan(column)
        return mask

    def _groups(self, native: _Mask, dead: Mapping[int, Longs]) -> list[FileGroup]:
        """Files that are read alike."""
        # One `read_parquet` for each kind: deleted rows, NaN and other names each need other text.
        columns, has_nan = self._stored(), self._may_have_nan()
        distinct = distinct_counts(self._scan._handle.metadata, self._scan.snapshot)
        rows_by_kind: dict[tuple[bool, bool, Names | None, _Layout], list[int]] = {}
        plain = np.array([row for row in np.flatnonzero(native) if row not in self._parts], int)
        for row, names in self._file_names(plain, columns).items():
            kind = (row in dead, bool(has_nan[row]), names, ())
            rows_by_kind.setdefault(kind, []).append(row)
        for row in (row for row in self._parts if native[row]):
            layout = tuple((part.is_base, part.ids, names) for part, names in self._parts[row])
            rows_by_kind.setdefault((row in dead, bool(has_nan[row]), None, layout), []).append(row)
        groups = []
        for number, ((touched, with_nan, names, layout), rows) in enumerate(rows_by_kind.items()):
            group = FileGroup(
                name=f"{self._prefix}_{number}",
                rows=typical_first(np.array(rows, dtype=np.intp), self._planned),
                columns=columns,
                names=names,
                touched=touched,
                has_nan=with_nan,
                distinct=distinct,
            )
            groups.append(group.of_parts(self._parts) if layout else group)
        return groups

    def _file_names(
        self, rows: np.ndarray[Any, Any], columns: tuple[NestedField, ...]
    ) -> dict[int, Names | None]:
        """How files call columns."""
        by_metadata = self._names_by_metadata(columns)
        own = self._planned.has_own_names
        names: dict[int, Names | None] = {
            int(row): by_metadata if own[row] else None for row in rows
        }
        unknown = [row for row, known in names.items() if known is None]
        if not unknown or not self._is_joined or len(unknown) > MAX_FOOTERS:
            return names
        storage = self._scan._handle.storage
        tasks = self._planned.tasks(np.array(unknown, dtype=np.intp))
        by_file = self._scan._handle.reader().map(
            tasks, lambda task: column_names(storage, task.source)
        )
        names |= {
            row: usable_names([by_id.get(column.field_id) for column in columns], by_id.values())
            for row, by_id in zip(unknown, by_file, strict=True)
        }
        return names

    def _names_by_metadata(self, columns: tuple[NestedField, ...]) -> Names | None:
        """Today's names, if files of the table surely have them."""
        if all(
            column.field_id not in LINEAGE_IDS
            and self._history.is_in_all(column)
            and self._history.has_lasting_name(column)
            for column in columns
        ):
            return tuple(column.name for column in columns)
        return None

    def _dead(self, rows: np.ndarray[Any, Any]) -> dict[int, Longs]:
        """Deleted positions by file, for files that have any."""
        planned = self._planned
        suspects = [
            int(row) for row in rows if planned.has_vector[row] or int(row) in planned.plan.matches
        ]
        tasks = planned.tasks(np.array(suspects, dtype=np.intp)) if suspects else []
        dropped = self._scan._handle.reader().map(tasks, self._reader.dropped)
        return {
            row: positions
            for row, positions in zip(suspects, dropped, strict=True)
            if positions is not None and len(positions)
        }

    def _task(self, row: int) -> Task:
        return self._planned.tasks(np.array([row], dtype=np.intp))[0]

    # Files that DuckDB reads

    def _parquet(self, group: FileGroup, dead: dict[int, Longs]) -> str:
        columns = self._read_schema.fields
        outputs = [f"{group.output(column)} AS {quoted(column.name)}" for column in columns]
        if self._key:
            outputs.append(f"{group.file_value('base')} + r.file_row_number AS {KEY}")
        joins = self._beside(group) + self._file_values(group)
        deleted = self._deleted_bit(group, dead) if group.touched else None
        if deleted is not None:
            outputs.append(f"{deleted} AS {duckdb_deleted.DELETED}")
        elif group.touched:
            joins += self._dead_join(group, dead)
        rows = f"SELECT {', '.join(outputs)} FROM {self._read_parquet(group)} r{joins}"
        return rows if deleted is None else duckdb_deleted.without_deleted(rows)

    def _beside(self, group: FileGroup) -> str:
        return "".join(
            f" JOIN {self._read_parquet(other)} {other.alias} ON {other.same_row}"
            for other in group.beside
        )

    def _raw_rows(self, dead: dict[int, Longs]) -> RawRows:
        columns = self._stored()
        every = np.arange(self._planned.num_files)
        own = bool(self._planned.has_own_names.all())
        group = FileGroup(
            name=f"{self._prefix}_raw",
            rows=every,
            columns=columns,
            names=self._names_by_metadata(columns) if own else None,
            has_nan=bool(self._may_have_nan().any()),
            distinct=distinct_counts(self._scan._handle.metadata, self._scan.snapshot),
        )
        outputs = {
            column.name: group.stored(column)
            if column.field_id == ROW_ID.field_id
            else group.output(column)
            for column in self._read_schema.fields
        }
        outputs |= {FILE_INDEX: "r.file_index", ROW_NUMBER: "r.file_row_number"}
        chosen = ", ".join(f"{value} AS {quoted(name)}" for name, value in outputs.items())
        bounds = {
            column.name: stats
            for column in self._read_schema.fields
            if (stats := self._planned.bounds(column)) is not None
        }
        rows = f"SELECT {chosen} FROM {self._read_parquet(group)} r"
        return RawRows(rows=rows, deleted=dead, bounds=bounds)

    def _stored(self) -> tuple[NestedField, ...]:
        """Columns that are read from files; DuckDB wants at least one."""
        columns = tuple(
            column
            for column in self._read_schema.fields
            if column.field_id not in RESERVED_IDS or column.field_id in LINEAGE_IDS
        )
        if columns:
            return columns
        every = ((column,) for column in self._scan.table_schema.fields)
        return next((one for one in every if self._names_by_metadata(one)), (ROW_ID,))

    def _read_parquet(self, group: FileGroup) -> str:
        sources = group.files
        locations = [file.path for file in sources] or [
            self._planned.paths[at] for at in group.rows
        ]
        files = self._addresses(locations)
        self._out.num_files += len(files)
        sizes = self._planned.plan.files.numpy("file_size_in_bytes")
        size = sources[0].file_size_in_bytes if sources else int(sizes[int(group.rows[0])])
        self._out.opened.append((locations[0], size))
        if len(files) <= self._max_inline:
            # Names in structs are taken as they are; others are patterns.
            listed = f"[{', '.join(f'{{filename: {string_text(file)}}}' for file in files)}]"
        else:
            variable = group.variable("files")
            self._out.variables[variable] = [{"filename": file} for file in files]
            listed = f"getvariable('{variable}')"
        return f"read_parquet({listed}, {group.options()})"

    def _addresses(self, locations: Sequence[str]) -> list[str]:
        """Paths as DuckDB takes them; those that are not local go through the storage."""
        # A server's storage opens no path that its fence does not let through: DuckDB must ask it.
        if getattr(self._scan._handle.storage, "is_direct", True) and all(
            is_local(path) for path in locations
        ):
            files = [local_path(path) for path in locations]
            if self._folders is None or _are_below(self._folders, files):
                return files
        from frazil.rows.duckdb.storage_files import StorageFiles

        if self._out.files is None:
            sizes = self._planned.plan.files.numpy("file_size_in_bytes").tolist()
            known = dict(zip(self._planned.paths, sizes, strict=True))
            parts = [part.source for own in self._parts.values() for part, _ in own]
            known |= {source.path: source.file_size_in_bytes for source in parts}
            protocol = f"{STORAGE_FILES}/{self._prefix.strip('_')}"
            self._out.files = StorageFiles(self._scan._handle.storage, known, protocol)
        return [self._out.files.address(path) for path in locations]

    def _file_values(self, group: FileGroup) -> str:
        """Make known what metadata says of each file, by its number in the list: the join for what
        does not come from lists."""
        needed = {_VALUES_OF_FILES.get(column.field_id) for column in self._read_schema.fields}
        names = [name for name in _VALUES_OF_FILES.values() if name in needed]
        names += ["base"] if self._key else []
        if not names:
            return ""
        values = file_values(self._planned, group.rows, names)
        if group.has_lists:
            for name, array in values.items():
                self._out.variables[group.variable(name)] = array.to_pylist()
            values = {}
        for column in self._read_schema.fields:
            if column.field_id == PARTITION_ID:
                values["part"] = partitions(self._planned, group.rows, column)
        if not values:
            return ""
        numbers = arrow_values.array(np.arange(len(group.rows), dtype=np.uint64))
        table = group.variable("values")
        self._out.relations[table] = pa.table({"file_index": numbers, **values})
        return f" JOIN {table} i ON i.file_index = r.file_index"

    def _deleted_bit(self, group: FileGroup, dead: dict[int, Longs]) -> str | None:
        """What tells whether a row is deleted; None where a join is used instead."""
        positions = [dead.get(int(row), _NONE).astype(np.int64) for row in group.rows]
        records = self._planned.records[group.rows].tolist()
        bit = duckdb_deleted.deleted_bit(positions, records, group.variable("bits"))
        if bit is None:
            return None
        self._out.bitmaps.update(bit.bitmaps)
        return bit.expression

    def _dead_join(self, group: FileGroup, dead: dict[int, Longs]) -> str:
        positions = [dead.get(int(row), _NONE) for row in group.rows]
        table = group.variable("dead")
        self._out.relations[table] = duckdb_deleted.deleted_rows(range(len(group.rows)), positions)
        return (
            f" ANTI JOIN {table} d ON d.{duckdb_deleted.FILE} = r.file_index "
            f"AND d.{duckdb_deleted.ROW} = r.file_row_number"
        )

    # Files that Frazil reads

    def _arrow(self, rows: np.ndarray[Any, Any]) -> str:
        # Loaded with the first such file: few tables have any.
        from frazil.rows.duckdb.task_stream import TaskStream

        name = f"{self._prefix}_arrow"
        bases = self._planned.bases[rows] if self._key else None
        stream = TaskStream.of(self._reader, self._planned.tasks(rows), bases)
        if self._whole:
            self._out.relations[name] = stream
        else:
            from frazil.rows.duckdb.streamed_tasks import StreamedTasks

            self._out.relations[name] = StreamedTasks(stream)
        # DuckDB hands filters on plain columns to Arrow, for which NaN is not above all numbers.
        outputs = [
            # A variant that says null is null to DuckDB, and stays what it is.
            quoted(column.name)
            if isinstance(column.field_type, VariantType)
            else f"CASE WHEN {quoted(column.name)} IS NULL THEN NULL ELSE "
            f"CAST({quoted(column.name)} AS {type_text(column.field_type)}) END AS "
            f"{quoted(column.name)}"
            for column in self._read_schema.fields
        ]
        return f"SELECT {', '.join([*outputs, *([KEY] if self._key else [])])} FROM {name}"

    def _nothing(self) -> str:
        outputs = [
            f"CAST(NULL AS {type_text(column.field_type)}) AS {quoted(column.name)}"
            for column in self._read_schema.fields
        ]
        if self._key:
            outputs.append(f"CAST(NULL AS BIGINT) AS {KEY}")
        return f"SELECT {', '.join(outputs)} WHERE false"
