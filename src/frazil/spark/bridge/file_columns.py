"""The files of a plan as columns in a file that Java maps into memory.

A million files are a few numbers and a name each, never a text or an object. Numbers are in the
byte order of the machine; texts and bitmaps are 64-bit offsets, one more than there are, and their
bytes. Every part starts at a multiple of eight.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil import arrow_values
from frazil.format import paths
from frazil.rows.planned import Planned
from frazil.spark.session.file_list import addresses
from frazil.value_classes import frozen

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Numbers: TypeAlias = "npt.NDArray[np.int64] | npt.NDArray[np.int32]"
Place: TypeAlias = "tuple[int, int]"
"""Where a part starts, and how many bytes it has."""
PIECE_BYTES: Final = 1 << 30
"""How much of a part Java maps at once, which can be 2 GB at most: a multiple of eight."""
_ALIGNED: Final = 8
_PLAIN: Final = r"^([A-Za-z0-9_~=-][A-Za-z0-9_.~=-]*(/|$))+$"
"""Paths below the table's folder that are the same in an address. None has a part `..`: others are
resolved, which refuses those that lead out."""


class ColumnFiles:
    """The files with the columns of plans: one for each question, in a folder that nobody else can
    open and that goes with its owner."""

    def __init__(self) -> None:
        self._folder: Path | None = None

    def path(self, question: str) -> Path:
        """Where the columns that answer a question are."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="frazil-plans-"))
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        name = hashlib.blake2b(question.encode(), digest_size=16).hexdigest()
        return self._folder / name

    @property
    def size(self) -> int:
        """The bytes of all columns."""
        folder = self._folder
        return 0 if folder is None else sum(entry.stat().st_size for entry in os.scandir(folder))

    def remove(self, question: str) -> None:
        """Give up the columns that answer a question; what was mapped of them stays."""
        self.path(question).unlink(missing_ok=True)


@frozen
class FileNames:
    """The names of a plan's files.

    A file below the table's folder has the rest of its path as name, and no address: its address
    is that of the folder and the name. Others have the whole path, and the address Hadoop knows.
    """

    folder: str
    folder_address: str
    names: pa.ChunkedArray
    addresses: pa.ChunkedArray

    @staticmethod
    def of(spark: SparkSession, planned: Planned) -> FileNames:
        """The names of the files of a plan."""
        location = planned.scan._handle.location
        folder = paths.resolve(location, "x").removesuffix("/x")
        stored = planned.plan.files.column("location")
        is_plain = pc.match_substring_regex(stored, _PLAIN)
        rows = np.flatnonzero(~arrow_values.to_numpy(is_plain).astype(np.bool_))
        names, special = stored, []
        if rows.size:
            resolved = paths.resolve_all(location, stored)
            names = pc.if_else(is_plain, stored, resolved)
            special = resolved.take(pa.array(rows)).to_pylist()
        return FileNames(
            folder=folder,
            folder_address=next(iter(addresses(spark, [folder]))),
            names=names,
            addresses=texts(addresses(spark, special), rows, len(stored)),
        )


def write(path: Path, columns: Mapping[str, Numbers | pa.ChunkedArray]) -> dict[str, list[Place]]:
    """Write columns, without nulls; returns where the parts of each are.

    The file is put in its place when it is whole: what was mapped of an earlier one stays.
    """
    draft = path.with_name(f"{path.name}.{os.getpid()}-{id(columns)}")
    with draft.open("wb") as file:
        places = {
            name: [_part(file, pieces) for pieces in _parts(column)]
            for name, column in columns.items()
        }
    draft.replace(path)
    return places


def texts(
    values: Iterable[str | bytes | None], rows: npt.NDArray[np.intp], size: int
) -> pa.ChunkedArray:
    """A column of texts or bytes at ascending rows, which is empty at all others."""
    told = [value.encode() if isinstance(value, str) else value or b"" for value in values]
    lengths = np.zeros(size + 1, np.int64)
    lengths[rows + 1] = [len(value) for value in told]
    ends = pa.py_buffer(np.cumsum(lengths))
    buffers = [None, ends, pa.py_buffer(b"".join(told))]
    return pa.chunked_array([pa.LargeBinaryArray.from_buffers(pa.large_binary(), size, buffers)])


def _parts(column: Numbers | pa.ChunkedArray) -> list[list[npt.NDArray[Any]]]:
    """The parts of a column, each in pieces that follow one another. No piece is a copy."""
    if isinstance(column, np.ndarray):
        return [[column]]
    ends: list[npt.NDArray[np.int64]] = [np.zeros(1, np.int64)]
    data: list[npt.NDArray[np.uint8]] = []
    for chunk in column.chunks:
        if not len(chunk):
            continue
        is_large = pa.types.is_large_binary(chunk.type) or pa.types.is_large_string(chunk.type)
        _, offsets, held = chunk.buffers()
        kind = np.int64 if is_large else np.int32
        own = np.frombuffer(offsets, kind)[chunk.offset : chunk.offset + len(chunk) + 1]
        ends.append(own[1:].astype(np.int64) - own[0] + ends[-1][-1])
        if held is not None:
            data.append(np.frombuffer(held, np.uint8)[own[0] : own[-1]])
    return [ends, data]


def _part(file: IO[bytes], pieces: Sequence[npt.NDArray[Any]]) -> Place:
    start = -(-file.tell() // _ALIGNED) * _ALIGNED
    file.seek(start)
    for piece in pieces:
        file.write(np.ascontiguousarray(piece).data)
    return start, sum(piece.nbytes for piece in pieces)
