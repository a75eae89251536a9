"""Data files as they really lie in storage, checked against what Paimon's manifests say.

One listing of the table's directory gives every file's path and size: a file that is missing or of
another size stops the adoption before anything is written. Footers are opened only where manifests
cannot tell: whether a file has field ids when a column name was reused, and whether a level-0 file
holds delete rows that its writer did not count.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from frazil import arrow_compute as pc
from frazil.errors import FormatError, NotFound, StorageError
from frazil.paimon.read import directories
from frazil.paimon.read.paimon_table import PaimonState, PaimonTable
from frazil.paimon.read.table_schema import INSERT_KINDS, KIND
from frazil.storage import Storage
from frazil.threads import in_threads

Mask = npt.NDArray[np.bool_]

_THREADS: Final = 8
_MAX_SHOWN: Final = 5
_FIELD_ID: Final = b"PARQUET:field_id"


class Listing:
    """Sizes of the files under a table's directory, by path relative to it; listed once."""

    def __init__(self, table: PaimonTable) -> None:
        self._root = table.location
        self._sizes: dict[str, int] | None = None
        self._table = table
        self._by_name: dict[str, str] | None = None

    @property
    def sizes(self) -> dict[str, int]:
        """Size by relative path."""
        if self._sizes is None:
            skip = len(self._root) + 1
            self._sizes = {info.path[skip:]: info.size for info in self._table.data_files()}
        return self._sizes

    def path_of(self, name: str) -> str | None:
        """The one relative path that ends in this file name."""
        if self._by_name is None:
            self._by_name = {path.rsplit("/", 1)[-1]: path for path in self.sizes}
        return self._by_name.get(name)


def located(table: PaimonTable, state: PaimonState, keep: Mask, listing: Listing) -> pa.Array:
    """Locations of all files, the kept ones known to exist with the size their entry gives.

    A file that is not in the directory its partition calls for is looked up by its name, which is
    unique: writers render some partition types differently.
    """
    files = state.files
    locations = files["location"].to_pylist()
    names = files["file_name"].to_pylist()
    sizes = files["file_size"].to_pylist()
    external = pc.is_valid(files["external_path"]).to_numpy(zero_copy_only=False)
    skip = len(table.location) + 1
    problems: list[str] = []
    outside: list[int] = []
    for row in np.flatnonzero(keep).tolist():
        path = locations[row]
        if external[row]:
            outside.append(row)
            continue
        relative = path[skip:]
        size = listing.sizes.get(relative)
        if size is None:
            location = listing.path_of(names[row])
            if location is None:
                problems.append(f"{path}: gone")
                continue
            size, locations[row] = listing.sizes[location], f"{table.location}/{location}"
        if size != sizes[row]:
            problems.append(f"{path}: {size} bytes, its entry says {sizes[row]}")
    problems += _outside_problems(table.storage, [(locations[row], sizes[row]) for row in outside])
    if problems:
        listed = "".join(f"\n  - {problem}" for problem in problems[:_MAX_SHOWN])
        raise NotFound(
            f"{table.location}: {len(problems)} data files of snapshot {state.snapshot.id} are not "
            f"as its manifests say. Paimon may have expired the snapshot meanwhile: take a newer "
            f"one, or create a tag in Paimon to keep it.{listed}"
        )
    return pa.array(locations, pa.string())


def _outside_problems(storage: Storage, files: Sequence[tuple[str, int]]) -> list[str]:
    def check(file: tuple[str, int]) -> str | None:
        path, expected = file
        try:
            size = storage.size(path)
        except (NotFound, StorageError):
            return f"{path}: gone"
        return None if size == expected else f"{path}: {size} bytes, its entry says {expected}"

    problems = in_threads(files, check, threads=_THREADS)
    return [problem for problem in problems if problem is not None]


def inexact_partitions(state: PaimonState) -> bool:
    """Whether some partition column is rendered differently by different writers."""
    return not all(directories.is_exact(field.type) for field in state.schema.partition_fields)


def without_field_ids(storage: Storage, paths: Iterable[str]) -> list[str]:
    """Those of the data files whose columns carry no field ids."""

    def lacks(path: str) -> bool:
        if not path.endswith(".parquet"):
            return True
        return not any(_FIELD_ID in (field.metadata or {}) for field in _schema(storage, path))

    return _where(lacks, paths)


def with_delete_rows(storage: Storage, paths: Iterable[str]) -> list[str]:
    """Those of the primary-key files that hold rows of kind -D or -U."""

    def deletes(path: str) -> bool:
        if not path.endswith(".parquet"):
            return False
        with storage.open(path).arrow() as source:
            file = _opened(path, source)
            if KIND not in file.schema_arrow.names:
                return False
            kinds = file.read(columns=[KIND])[KIND]
        return not set(pc.unique(kinds).to_pylist()) <= set(INSERT_KINDS)

    return _where(deletes, paths)


def _where(test: Any, paths: Iterable[str]) -> list[str]:
    listed = list(paths)
    hits = in_threads(listed, test, threads=_THREADS)
    return [path for path, hit in zip(listed, hits, strict=True) if hit]


def _schema(storage: Storage, path: str) -> pa.Schema:
    with storage.open(path).arrow() as source:
        return _opened(path, source).schema_arrow


def _opened(path: str, source: Any) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(source)
    except pa.ArrowException as error:
        raise FormatError(f"not a readable Parquet file: {error}", path=path) from None


def named(paths: Collection[str]) -> str:
    """A few of the paths, for a message."""
    listed = ", ".join(list(paths)[:_MAX_SHOWN])
    return listed if len(paths) <= _MAX_SHOWN else f"{listed} and {len(paths) - _MAX_SHOWN} more"
