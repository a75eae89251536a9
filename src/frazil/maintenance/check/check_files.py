"""Files that entries name: there, of the stated size, and when asked with the stated content.

Row ids are unique: no two live rows of a snapshot have the same one. Ids of a file mostly follow
one another, so they are kept as ranges. What is held in memory grows with how scattered ids are,
not with the number of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.commit.handle import TableHandle
from frazil.data.metadata_columns import ROW_ID, with_dropped
from frazil.data.read.read_files import Reading
from frazil.data.read.sources import ParquetSource, check_whole, explained, open_source
from frazil.data.slices import DataFileSlice
from frazil.errors import FormatError, FrazilError, NotFound, Unsupported
from frazil.format import paths
from frazil.format.checks import CLIENT_FOLDER
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.column_files import column_files_of
from frazil.format.entries.fields import COLUMN_FILES, VECTOR_KEYS, ContentType
from frazil.format.metadata.metadata import Snapshot
from frazil.format.vectors import puffin
from frazil.iceberg.schema import Schema
from frazil.maintenance.check.problems import Place, Problems
from frazil.maintenance.progress import Progress, run_all, silent
from frazil.maintenance.removal.kept_files import kept_files
from frazil.properties.registry import NAME_MAPPING
from frazil.scan.plan import plan
from frazil.scan.tasks import Task, TaskReader, tasks_of
from frazil.storage import Storage
from frazil.value_classes import dataclass, field, frozen, replace

_MAX_SHOWN = 5
Ids = np.ndarray[Any, np.dtype[np.int64]]


def check_row_ids(handle: TableHandle, snapshot: Snapshot, place: Place) -> None:
    """Note row ids that two live rows of a snapshot share."""
    if snapshot.root_manifest is None:
        return
    metadata = handle.metadata
    reader = TaskReader(
        Reading(
            storage=handle.storage,
            schema=Schema(ROW_ID),
            table_schema=with_dropped(metadata.schema(), metadata.schemas),
            specs=metadata.specs_by_id(),
            name_mapping=NAME_MAPPING.of(metadata.properties),
        )
    )
    starts: list[Ids] = []
    ends: list[Ids] = []
    names: list[str] = []
    owners: list[Ids] = []

    def ranges(task: Task) -> list[tuple[Ids, Ids]]:
        with replace(place, path=task.source.path).guarded():
            return [_ranges(batch.column(0).drop_null().to_numpy()) for batch in reader.read(task)]
        return []

    tasks = list(tasks_of(plan(handle.reader(), snapshot), location=handle.location))
    for task, stored in zip(tasks, handle.reader().map(tasks, ranges), strict=True):
        for first, last in stored:
            starts.append(first)
            ends.append(last)
            owners.append(np.full(first.size, len(names), dtype=np.int64))
        names.append(task.source.path)
    if not starts:
        return
    first, last, owner = np.concatenate(starts), np.concatenate(ends), np.concatenate(owners)
    order = np.argsort(first, kind="stable")
    first, last, owner = first[order], last[order], owner[order]
    reach = np.maximum.accumulate(last)
    for at in np.flatnonzero(first[1:] <= reach[:-1])[:_MAX_SHOWN]:
        widest = int(np.argmax(last[: at + 1]))
        one, other = names[owner[widest]], names[owner[at + 1]]
        both = one if one == other else f"{one} and {other}"
        place.add("_row_id", f"{first[at + 1]} is the id of two rows, in {both}")


def _ranges(ids: Ids) -> tuple[Ids, Ids]:
    """First and last id of every run of ids that follow one another."""
    breaks = np.flatnonzero(np.diff(ids) != 1) + 1
    if not ids.size:
        return ids, ids
    return ids[np.concatenate(([0], breaks))], ids[np.concatenate((breaks - 1, [ids.size - 1]))]


FILE_KEYS = (
    "location",
    "content_type",
    "file_format",
    "record_count",
    "file_size_in_bytes",
    *VECTOR_KEYS,
    "tracking.sequence_number",
    "tracking.first_row_id",
)
_ROWS_TOGETHER = 20_000


@frozen
class VectorAt:
    """A deletion vector as an entry states it."""

    offset: int
    size_in_bytes: int
    cardinality: int
    record_count: int | None


_TEXT = pa.string()
_PART_FILES = 256


@dataclass(slots=True, kw_only=True)
class Stated:
    """What entries say of one file; sizes differ only if something is wrong."""

    sizes: set[int] = field(default_factory=set)
    records: set[int] = field(default_factory=set)
    file_format: str | None = None
    vectors: set[VectorAt] = field(default_factory=set)
    end: int = 0


class FileChecks:
    """Collects what entries claim, in columns, then checks every file once."""

    def __init__(self, storage: Storage, location: str, problems: Problems) -> None:
        self._storage = storage
        self._location = location
        self._problems = problems
        self._metadata: dict[str, Stated] = {}
        """Manifests and Puffin files: few, beside data files."""
        self._waiting: list[tuple[str, EntryBatch]] = []
        self._rows_waiting = 0
        self._claims: list[pa.Table] = []
        self.count = 0
        """How many files there are, once they were checked."""

    def manifest(self, address: str, size: int | None) -> None:
        """A root or leaf; roots have no stated size."""
        stated = self._metadata.setdefault(address, Stated())
        if size is not None:
            stated.sizes.add(size)

    def entries(self, batch: EntryBatch, where: str) -> None:
        """Data files, delete files and vectors that live entries of a manifest name. Manifests are
        usually small, so several are checked at once."""
        if not batch.num_rows:
            return
        self._waiting.append((where, batch.select((*FILE_KEYS, COLUMN_FILES))))
        self._rows_waiting += batch.num_rows
        if self._rows_waiting >= _ROWS_TOGETHER:
            self._take_waiting()

    def _take_waiting(self) -> None:
        waiting, self._waiting, self._rows_waiting = self._waiting, [], 0
        try:
            self._take(EntryBatch.concat(batch for _, batch in waiting))
        except FrazilError:  # one of them is broken: which one?
            for where, batch in waiting:
                with self._problems.at(where).guarded():
                    self._take(batch)

    def _take(self, batch: EntryBatch) -> None:
        addresses = paths.resolve_all(self._location, batch.column("location"))
        vector = np.asarray(batch.column("deletion_vector.location").is_valid())
        is_old_vector = (batch.numpy("content_type") == ContentType.POSITION_DELETES) & vector
        records = batch.column("record_count").cast(pa.int64())
        claims = pa.table(
            {
                "address": addresses.cast(pa.string()),
                "size": batch.column("file_size_in_bytes").cast(pa.int64()),
                # An old vector's entry counts deleted rows; its Puffin file has no rows of its own.
                "records": pc.if_else(pa.array(is_old_vector), None, records),
                "format": batch.column("file_format").cast(pa.string()),
            }
        )
        self._claims.append(claims)
        self._column_files(batch)
        rows = np.flatnonzero(vector)
        self._vectors(batch.take(rows), is_old_vector[rows])

    def _column_files(self, batch: EntryBatch) -> None:
        """Column files have as many rows as the data files they belong to."""
        if not batch.has(COLUMN_FILES):
            return
        pairs = zip(column_files_of(batch), batch.pylist("record_count"), strict=True)
        rows = [
            {
                "address": paths.resolve(self._location, file.location),
                "size": file.file_size_in_bytes,
                "records": records,
                "format": file.file_format,
            }
            for files, records in pairs
            for file in files
        ]
        if rows:
            self._claims.append(pa.Table.from_pylist(rows, schema=self._claims[-1].schema))

    def _vectors(self, batch: EntryBatch, is_old: npt.NDArray[np.bool_]) -> None:
        keys = ("location", "offset", "size_in_bytes", "cardinality")
        columns = [batch.pylist(f"deletion_vector.{key}") for key in keys]
        counts = batch.pylist("record_count")
        for old, records, path, offset, length, rows in zip(
            is_old.tolist(), counts, *columns, strict=True
        ):
            if offset is None or length is None:
                continue
            address = paths.resolve(self._location, path)
            stated = self._metadata.setdefault(address, Stated())
            stated.end = max(stated.end, offset + length)
            stated.vectors.add(
                VectorAt(
                    offset=offset,
                    size_in_bytes=length,
                    cardinality=rows if rows is not None else records,
                    record_count=None if old else records,
                )
            )

    def run(self, *, deep: bool, progress: Progress = silent) -> None:
        """Check every file; `deep` reads every page of data files, and vectors."""

        if self._waiting:
            self._take_waiting()

        def check_file(address: str, stated: Stated) -> None:
            place = self._problems.at(address)
            with place.guarded():
                size = self._size(place)
                if size is None:
                    return
                _check_size(stated, size, place)
                if deep:
                    self._open(stated, size, place)

        def check_files(claims: pa.Table) -> None:
            for address, stated in _stated(claims, self._metadata):
                check_file(address, stated)

        parts = self._parts()
        addresses = pc.unique(
            pa.chunked_array([p["address"].combine_chunks() for p in parts], _TEXT)
        )
        metadata = pa.array(list(self._metadata), _TEXT)
        apart = metadata.filter(pc.invert(pc.is_in(metadata, value_set=addresses))).to_pylist()
        self.count = len(addresses) + len(apart)

        def in_files(completed: int, total: int, what: str, /) -> None:
            progress(len(addresses) * completed // total, len(addresses), what)

        for _ in run_all(parts, check_files, what="files", progress=in_files):
            pass
        pairs = [(address, self._metadata[address]) for address in apart]
        for _ in run_all(
            pairs, lambda pair: check_file(*pair), what="metadata files", progress=progress
        ):
            pass

    def _parts(self) -> list[pa.Table]:
        """Distinct claims in order of addresses, cut where one address ends."""
        if not self._claims:
            return []
        names = self._claims[0].column_names
        claims = pa.concat_tables(self._claims).group_by(names).aggregate([])
        self._claims = []
        claims = claims.sort_by("address").combine_chunks()
        addresses = claims["address"]
        cuts = [0]
        while cuts[-1] < claims.num_rows:
            end = min(cuts[-1] + _PART_FILES, claims.num_rows)
            while end < claims.num_rows and addresses[end].equals(addresses[end - 1]):
                end += 1
            cuts.append(end)
        return [claims.slice(start, end - start) for start, end in pairwise(cuts)]

    def _size(self, place: Place) -> int | None:
        try:
            return self._storage.size(place.path)
        except NotFound:
            place.add("location", f"the file is not there{self._cause(place.path)}")
        except FrazilError as error:
            place.add("location", str(error))
        return None

    @cached_property
    def _copied(self) -> frozenset[str]:
        """Files of which a server keeps copies."""
        copies = kept_files(self._storage, self._location)
        return frozenset(path for copy in copies for path, _ in copy.files)

    def _cause(self, address: str) -> str:
        """What may have become of a data file that is gone."""
        if address in self._copied:
            return (
                ": its writer deleted it when it got no answer to a commit that had landed. A copy "
                "is kept, and put back when the table is loaded through frazil serve"
            )
        if address.startswith(f"{self._location.rstrip('/')}/{CLIENT_FOLDER}/data/"):
            return (
                ": a client of frazil serve wrote it, and may have deleted it when it got no "
                "answer to a commit that had landed, as DuckDB does; load its rows again"
            )
        return ""

    def _open(self, stated: Stated, size: int, place: Place) -> None:
        address = place.path
        for stated_records in stated.records:
            source = DataFileSlice(
                path=address,
                file_format=stated.file_format or "parquet",
                record_count=stated_records,
                file_size_in_bytes=size,
            )
            try:
                opened = open_source(self._storage, source)
            except FormatError as error:
                place.add("record_count", error.problem)
                continue
            except Unsupported:
                continue  # a format whose rows are not read here cannot be counted either
            if isinstance(opened, ParquetSource):
                self._read_all(opened, place)
        if stated.vectors:
            with place.guarded():
                self._check_footer(stated.vectors, place)
        for vector in _ordered(stated.vectors):
            with place.guarded():
                puffin.read_vector_at(
                    self._storage.open(address),
                    offset=vector.offset,
                    size_in_bytes=vector.size_in_bytes,
                    path=address,
                    cardinality=vector.cardinality,
                    record_count=vector.record_count,
                    limits=self._storage.limits,
                )

    def _check_footer(self, vectors: Iterable[VectorAt], place: Place) -> None:
        """Entries say where a vector is; engines that read the file's footer must find it too."""
        opened, limits = self._storage.open(place.path), self._storage.limits
        footer = puffin.read_footer(opened, path=place.path, limits=limits)
        blobs = {(blob.offset, blob.length) for blob in footer.blobs}
        for vector in _ordered(vectors):
            place.need(
                (vector.offset, vector.size_in_bytes) in blobs,
                "footer",
                f"has no vector of {vector.size_in_bytes} bytes at {vector.offset}; an entry has",
            )

    def _read_all(self, opened: ParquetSource, place: Place) -> None:
        """Every byte against the file's seal, then every page, which may have a checksum too."""
        try:
            with explained(place.path):
                check_whole(self._storage, place.path)
                opened.read_all()
        except FormatError as error:
            place.add("content", error.problem)


def _ordered(vectors: Iterable[VectorAt]) -> list[VectorAt]:
    return sorted(vectors, key=lambda vector: vector.offset)


def _check_size(stated: Stated, size: int, place: Place) -> None:
    for stated_size in stated.sizes:
        what = f"is {size}; an entry says {stated_size}"
        place.need(stated_size == size, "file_size_in_bytes", what)
    what = f"the file has {size} bytes; a vector is said to end at {stated.end}"
    place.need(stated.end <= size, "deletion_vector.size_in_bytes", what)


def _stated(claims: pa.Table, metadata: Mapping[str, Stated]) -> Iterator[tuple[str, Stated]]:
    """What sorted claims say of each file; a Puffin file may have entries of its own, too."""
    for address, rows in groupby(claims.to_pylist(), key=itemgetter("address")):
        stated = metadata.get(address) or Stated()
        for row in rows:
            stated.sizes.add(row["size"])
            stated.file_format = row["format"]
            if row["records"] is not None:
                stated.records.add(row["records"])
        yield address, stated
