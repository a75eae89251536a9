"""Files that entries name: there, of the stated size, and when asked with the stated content."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from frazil.data.slices import DataFileSlice
from frazil.data.sources import ParquetSource, check_whole, explained, open_source
from frazil.errors import FormatError, FrazilError, NotFound, Unsupported
from frazil.format import paths, puffin
from frazil.format.batch import EntryBatch
from frazil.format.fields import ContentType
from frazil.maintenance.problems import Problems
from frazil.maintenance.progress import Progress, run_all, silent
from frazil.storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorAt:
    """A deletion vector as an entry states it."""

    offset: int
    size_in_bytes: int
    cardinality: int
    record_count: int | None


@dataclass(slots=True, kw_only=True)
class Stated:
    """What entries say of one file; sizes differ only if something is wrong."""

    sizes: set[int] = field(default_factory=set)
    records: set[int] = field(default_factory=set)
    file_format: str | None = None
    vectors: set[VectorAt] = field(default_factory=set)
    end: int = 0


class FileChecks:
    """Collects what entries claim, then checks every file once."""

    def __init__(self, storage: Storage, location: str, problems: Problems) -> None:
        self._storage = storage
        self._location = location
        self._problems = problems
        self.files: dict[str, Stated] = {}

    def manifest(self, address: str, size: int | None) -> None:
        """A root or leaf; roots have no stated size."""
        stated = self.files.setdefault(address, Stated())
        if size is not None:
            stated.sizes.add(size)

    def entries(self, batch: EntryBatch) -> None:
        """Data files, delete files and vectors that live entries name."""
        columns = zip(
            paths.resolve_all(self._location, batch.column("location")).to_pylist(),
            batch.pylist("content_type"),
            batch.pylist("file_size_in_bytes"),
            batch.pylist("record_count"),
            batch.pylist("file_format"),
            batch.pylist("deletion_vector.location"),
            batch.pylist("deletion_vector.offset"),
            batch.pylist("deletion_vector.size_in_bytes"),
            batch.pylist("deletion_vector.cardinality"),
            strict=True,
        )
        for address, kind, size, records, form, vector, offset, length, rows in columns:
            stated = self.files.setdefault(address, Stated())
            is_old_vector = kind == ContentType.POSITION_DELETES and vector is not None
            stated.sizes.add(size)
            stated.file_format = form
            if not is_old_vector:
                stated.records.add(records)
            if vector is None or offset is None or length is None:
                continue
            puffin_file = self.files.setdefault(paths.resolve(self._location, vector), Stated())
            puffin_file.end = max(puffin_file.end, offset + length)
            puffin_file.vectors.add(
                VectorAt(
                    offset=offset,
                    size_in_bytes=length,
                    cardinality=rows if rows is not None else records,
                    record_count=None if is_old_vector else records,
                )
            )

    def run(self, *, deep: bool, progress: Progress = silent) -> None:
        """Check every file; `deep` reads every page of data files, and vectors."""

        def look(item: tuple[str, Stated]) -> None:
            address, stated = item
            with self._problems.guarded(address):
                size = self._size(address)
                if size is None:
                    return
                self._check_size(address, stated, size)
                if deep:
                    self._open(address, stated, size)

        for _ in run_all(list(self.files.items()), look, what="files", progress=progress):
            pass

    def _size(self, address: str) -> int | None:
        try:
            return self._storage.size(address)
        except NotFound:
            self._problems.add(address, "location", "the file is not there")
        except FrazilError as error:
            self._problems.add(address, "location", str(error))
        return None

    def _check_size(self, address: str, stated: Stated, size: int) -> None:
        for said in stated.sizes:
            self._problems.need(
                said == size, address, "file_size_in_bytes", f"is {size}; an entry says {said}"
            )
        self._problems.need(
            stated.end <= size,
            address,
            "deletion_vector.size_in_bytes",
            f"the file has {size} bytes; a vector is said to end at {stated.end}",
        )

    def _open(self, address: str, stated: Stated, size: int) -> None:
        for said in stated.records:
            source = DataFileSlice(
                path=address,
                file_format=stated.file_format or "parquet",
                record_count=said,
                file_size_in_bytes=size,
            )
            try:
                opened = open_source(self._storage, source)
            except FormatError as error:
                self._problems.add(address, "record_count", error.problem)
                continue
            except Unsupported:
                continue  # a format whose rows are not read here cannot be counted either
            if isinstance(opened, ParquetSource):
                self._read_all(address, opened)
        if stated.vectors:
            with self._problems.guarded(address):
                self._check_footer(address, stated.vectors)
        for vector in self._ordered(stated.vectors):
            with self._problems.guarded(address):
                puffin.read_vector_at(
                    self._storage.open(address),
                    offset=vector.offset,
                    size_in_bytes=vector.size_in_bytes,
                    path=address,
                    cardinality=vector.cardinality,
                    record_count=vector.record_count,
                    limits=self._storage.limits,
                )

    def _check_footer(self, address: str, vectors: Iterable[VectorAt]) -> None:
        """Entries say where a vector is; engines that read the file's footer must find it too."""
        opened, limits = self._storage.open(address), self._storage.limits
        footer = puffin.read_footer(opened, path=address, limits=limits)
        known = {(blob.offset, blob.length) for blob in footer.blobs}
        for vector in self._ordered(vectors):
            self._problems.need(
                (vector.offset, vector.size_in_bytes) in known,
                address,
                "footer",
                f"has no vector of {vector.size_in_bytes} bytes at {vector.offset}; an entry has",
            )

    def _read_all(self, address: str, opened: ParquetSource) -> None:
        """Every byte against the file's seal, then every page, which may have a checksum too."""
        try:
            with explained(address):
                check_whole(self._storage, address)
                opened.read_all()
        except FormatError as error:
            self._problems.add(address, "content", error.problem)

    @staticmethod
    def _ordered(vectors: Iterable[VectorAt]) -> list[VectorAt]:
        return sorted(vectors, key=lambda vector: vector.offset)
