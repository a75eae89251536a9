"""A Paimon table in storage: its schemas, snapshots, tags, branches and live files.

Reading is pinned: everything is asked of one snapshot, whose manifests never change. Files that
Paimon expired meanwhile give an error that says so. Nothing is ever written to the table.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.errors import FormatError, InvalidInput, NotFound
from frazil.format.checks import check_text
from frazil.paimon.read import binary_row, directories, manifest_tables, vector_files
from frazil.paimon.read.manifest_tables import live_entries
from frazil.paimon.read.snapshot import PaimonSnapshot, Tag, parse_snapshot, parse_tag
from frazil.paimon.read.table_schema import TableSchema, parse_schema
from frazil.storage import FileInfo, Storage, is_local, storage_for
from frazil.threads import in_threads
from frazil.value_classes import field, frozen, replace

_READERS: Final = 8
T = TypeVar("T")

_NO_VECTORS: Final[Mapping[str, vector_files.Positions]] = {}


@frozen
class Branch:
    """A branch of a Paimon table, `main` included."""

    name: str
    latest_snapshot_id: int | None
    latest_schema_id: int | None


@frozen(eq=False)
class PaimonState:
    """The table at one snapshot."""

    snapshot: PaimonSnapshot
    schema: TableSchema
    schemas: Mapping[int, TableSchema]
    """Every schema version, by id: files keep the one they were written in."""
    files: pa.Table
    """Live data files, with the columns of `manifest_tables.MANIFEST` and `location`."""
    index_files: pa.Table
    """Index files, with the columns of `manifest_tables.INDEX_MANIFEST` and `location`."""


@frozen(eq=False)
class PaimonTable:
    """A Paimon table, or one of its branches."""

    storage: Storage
    location: str
    branch: str | None = None
    _schemas: dict[int, TableSchema] = field(default_factory=dict)

    @staticmethod
    def open(
        location: str,
        *,
        storage: Storage | None = None,
        properties: Mapping[str, str] | None = None,
        branch: str | None = None,
    ) -> PaimonTable:
        """The table at a directory. `properties` are those of PyIceberg's FileIO."""
        root = check_text(location, "source", empty=False).rstrip("/")
        if root[:5].lower() == "file:":
            root = f"file:{root[5:]}"
        elif is_local(root) and not root.startswith("/"):
            root = os.path.abspath(root)
        table = PaimonTable(
            storage=storage or storage_for(root, dict(properties or {})),
            location=root,
            branch=None if branch == directories.MAIN_BRANCH else branch,
        )
        if not table.schema_ids():
            where = directories.branch_root(root, branch)
            raise NotFound(f"{where}: no Paimon table; expected a file schema/schema-0 in it")
        return table

    @property
    def _home(self) -> str:
        return directories.branch_root(self.location, self.branch)

    def on_branch(self, branch: str) -> PaimonTable:
        """The same table, seen from a branch."""
        return PaimonTable.open(self.location, storage=self.storage, branch=branch)

    def schema_ids(self) -> tuple[int, ...]:
        """Ids of all schema versions, ascending."""
        return self._numbers("schema", "schema-")

    def schemas(self) -> Mapping[int, TableSchema]:
        """All schema versions, by id."""
        return {schema_id: self.schema(schema_id) for schema_id in self.schema_ids()}

    def schema(self, schema_id: int | None = None) -> TableSchema:
        """One schema version; the latest when none is named."""
        if schema_id is None:
            schema_id = self.schema_ids()[-1]
        if schema_id not in self._schemas:
            path = directories.schema_path(self.location, schema_id, self.branch)
            self._schemas[schema_id] = self._parsed(path, parse_schema)
        return self._schemas[schema_id]

    def snapshot_ids(self) -> tuple[int, ...]:
        """Ids of the snapshots that are still there, ascending."""
        return self._numbers("snapshot", "snapshot-")

    def snapshots(self) -> tuple[PaimonSnapshot, ...]:
        """The snapshots that are still there, oldest first."""
        return tuple(self.snapshot(snapshot_id) for snapshot_id in self.snapshot_ids())

    def snapshot(self, snapshot_id: int | None = None) -> PaimonSnapshot:
        """One snapshot; the latest when none is named."""
        if snapshot_id is None:
            ids = self.snapshot_ids()
            if not ids:
                raise NotFound(f"{self._home}: the table has no snapshot yet")
            snapshot_id = ids[-1]
        path = directories.snapshot_path(self.location, snapshot_id, self.branch)
        return self._parsed(path, parse_snapshot)

    def tags(self) -> tuple[Tag, ...]:
        """All tags, by name."""
        names = sorted(self._names("tag", "tag-"))
        return tuple(
            self._parsed(f"{self._home}/tag/tag-{name}", partial(parse_tag, name)) for name in names
        )

    def branches(self) -> tuple[Branch, ...]:
        """`main` and all other branches, by name."""
        names = {
            info.path.split("/branch-", 1)[1].split("/", 1)[0]
            for info in self._list(f"{self.location}/branch")
            if "/branch-" in info.path
        }
        return tuple(self._branch(name) for name in (directories.MAIN_BRANCH, *sorted(names)))

    def _branch(self, name: str) -> Branch:
        view = replace(self, branch=None if name == directories.MAIN_BRANCH else name, _schemas={})
        snapshots, schemas = view.snapshot_ids(), view.schema_ids()
        return Branch(
            name=name,
            latest_snapshot_id=snapshots[-1] if snapshots else None,
            latest_schema_id=schemas[-1] if schemas else None,
        )

    def manifests(self, snapshot: PaimonSnapshot) -> pa.Table:
        """The manifests of a snapshot, base list first, with the columns of `MANIFEST_LIST`."""
        tables = [
            self._listed(data, path)
            for path, data in self._read_all(snapshot, snapshot.manifest_lists)
        ]
        return (
            pa.concat_tables(tables)
            if tables
            else manifest_tables.empty(manifest_tables.MANIFEST_LIST)
        )

    def entries(self, snapshot: PaimonSnapshot) -> pa.Table:
        """All ADD and DELETE entries of a snapshot, with the columns of `MANIFEST`."""
        names = self.manifests(snapshot)["file_name"].to_pylist()
        return self._entries(snapshot, names)

    def delta_entries(self, snapshot: PaimonSnapshot) -> pa.Table:
        """The ADD and DELETE entries that this snapshot itself brought."""
        return self._entries_of_list(snapshot, snapshot.delta_manifest_list)

    def changelog_entries(self, snapshot: PaimonSnapshot) -> pa.Table:
        """The changelog files that this snapshot brought."""
        return self._entries_of_list(snapshot, snapshot.changelog_manifest_list)

    def _entries_of_list(self, snapshot: PaimonSnapshot, manifest_list: str | None) -> pa.Table:
        names = [
            name
            for path, data in self._read_all(snapshot, [manifest_list] if manifest_list else [])
            for name in self._listed(data, path)["file_name"].to_pylist()
        ]
        return self._entries(snapshot, names)

    def _entries(self, snapshot: PaimonSnapshot, names: Sequence[str]) -> pa.Table:
        tables = [
            manifest_tables.read_manifest(data, path, limits=self.storage.limits)
            for path, data in self._read_all(snapshot, names)
        ]
        return (
            pa.concat_tables(tables) if tables else manifest_tables.empty(manifest_tables.MANIFEST)
        )

    def index_entries(self, snapshot: PaimonSnapshot) -> pa.Table:
        """The live index files of a snapshot, with the columns of `INDEX_MANIFEST`."""
        if snapshot.index_manifest is None:
            return manifest_tables.empty(manifest_tables.INDEX_MANIFEST)
        ((path, data),) = self._read_all(snapshot, [snapshot.index_manifest])
        table = manifest_tables.read_index_manifest(data, path, limits=self.storage.limits)
        return table.filter(pc.equal(table["kind"], manifest_tables.ADD))

    def state(self, snapshot: PaimonSnapshot | int | None = None) -> PaimonState:
        """The table at a snapshot; the latest when none is named."""
        pinned = snapshot if isinstance(snapshot, PaimonSnapshot) else self.snapshot(snapshot)
        return self.state_of(pinned, live_entries(self.entries(pinned)))

    def state_of(self, snapshot: PaimonSnapshot, files: pa.Table) -> PaimonState:
        """The state at a snapshot whose live entries are known."""
        schema = self.schema(snapshot.schema_id)
        used = set(pc.unique(files["schema_id"]).to_pylist()) | {schema.id}
        return PaimonState(
            snapshot=snapshot,
            schema=schema,
            schemas={schema_id: self.schema(schema_id) for schema_id in sorted(used)},
            files=self._located(schema, files),
            index_files=self._index_located(schema, self.index_entries(snapshot)),
        )

    def deletion_vectors(self, state: PaimonState) -> Mapping[str, vector_files.Positions]:
        """Positions of deleted rows, by data file name; files without any are absent."""
        index = state.index_files
        index = index.filter(pc.equal(index["index_type"], manifest_tables.DELETION_VECTORS))
        if index.num_rows == 0:
            return _NO_VECTORS
        rows = dict(
            zip(
                state.files["file_name"].to_pylist(),
                state.files["row_count"].to_pylist(),
                strict=True,
            )
        )
        by_file: dict[str, vector_files.Positions] = {}
        for path, ranges in zip(
            index["location"].to_pylist(), index["ranges"].to_pylist(), strict=True
        ):
            chosen = [item for item in ranges or () if item["f0"] in rows]
            if not chosen:
                continue
            data = self._read(path, state.snapshot)
            for item in chosen:
                name = item["f0"]
                try:
                    positions = vector_files.read_vector(
                        data,
                        offset=item["f1"],
                        length=item["f2"],
                        row_count=rows[name],
                        cardinality=item["_CARDINALITY"],
                        limits=self.storage.limits,
                    )
                except FormatError as error:
                    raise error.at(path) from None
                if len(positions):
                    by_file[name] = positions
        return by_file

    def data_files(self) -> Iterator[FileInfo]:
        """Every file under the table's directory, for checks against what manifests say."""
        return self._list(self.location)

    def _located(self, schema: TableSchema, files: pa.Table) -> pa.Table:
        """The files with a `location` column: the external path, or where the name must lie."""
        directories = self._directories(schema, files)
        names = files["file_name"].combine_chunks()
        slash = pa.scalar("/")
        inside = pc.binary_join_element_wise(pa.scalar(self.location), directories, names, slash)
        external = files["external_path"].combine_chunks()
        return files.append_column("location", pc.coalesce(external, inside))

    def _directories(self, schema: TableSchema, files: pa.Table) -> pa.Array:
        """The bucket directory of each row, relative to the table."""
        if files.num_rows == 0:
            return pa.array([], pa.string())
        partitions = files["partition"].combine_chunks().dictionary_encode()
        buckets = files["bucket"].to_numpy().astype(np.int64)
        keys, places = np.unique(
            np.stack([partitions.indices.to_numpy().astype(np.int64), buckets]),
            axis=1,
            return_inverse=True,
        )
        types = [field.type for field in schema.partition_fields]
        columns = binary_row.decode(partitions.dictionary, types)
        at = pa.array(keys[0])
        names = directories.bucket_directories(
            schema, [column.take(at) for column in columns], keys[1].tolist()
        )
        return pa.array(names, pa.string()).take(pa.array(places.reshape(-1)))

    def _index_located(self, schema: TableSchema, index: pa.Table) -> pa.Table:
        names = index["file_name"].combine_chunks()
        if schema.is_enabled("index-file-in-data-file-dir"):
            parts = [pa.scalar(self.location), self._directories(schema, index), names]
        else:
            parts = [pa.scalar(f"{self.location}/index"), names]
        inside = pc.binary_join_element_wise(*parts, pa.scalar("/"))
        if isinstance(inside, pa.Scalar):
            inside = pa.array([], pa.string())
        external = index["external_path"].combine_chunks()
        return index.append_column("location", pc.coalesce(external, inside))

    def _list(self, prefix: str) -> Iterator[FileInfo]:
        try:
            yield from self.storage.list(prefix)
        except NotFound:
            return

    def _names(self, folder: str, prefix: str) -> Iterable[str]:
        home = f"{self._home}/{folder}/"
        for info in self._list(home.rstrip("/")):
            name = info.path.rsplit("/", 1)[-1]
            if name.startswith(prefix):
                yield name[len(prefix) :]

    def _numbers(self, folder: str, prefix: str) -> tuple[int, ...]:
        numbers = (name for name in self._names(folder, prefix) if name.isdecimal())
        return tuple(sorted(int(name) for name in numbers))

    def _parsed(self, path: str, parse: Callable[[bytes], T]) -> T:
        data = self.storage.read(path)
        try:
            return parse(data)
        except FormatError as error:
            raise error.at(path) from None

    def _listed(self, data: bytes, path: str) -> pa.Table:
        return manifest_tables.read_manifest_list(data, path, limits=self.storage.limits)

    def _read(self, path: str, snapshot: PaimonSnapshot) -> bytes:
        try:
            return self.storage.read(path)
        except NotFound:
            raise NotFound(
                f"{path}: a file of snapshot {snapshot.id} is gone. Paimon may have expired the "
                "snapshot meanwhile: take a newer one, or create a tag in Paimon to keep it"
            ) from None

    def _read_all(
        self, snapshot: PaimonSnapshot, names: Sequence[str]
    ) -> Iterator[tuple[str, bytes]]:
        """Files of the manifest directory, in order; several are fetched at a time."""
        for name in names:
            if "/" in name or name in ("", ".", ".."):
                raise InvalidInput(f"{name!r} is not a file name")
        paths = [directories.manifest_path(self.location, name) for name in names]
        tables = in_threads(paths, lambda path: self._read(path, snapshot), threads=_READERS)
        yield from zip(paths, tables, strict=True)
