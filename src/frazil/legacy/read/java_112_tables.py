"""The Parquet manifests of early format-version 4 writers: v3's entries, column by column.

Iceberg Java 1.12 calls this format-version 4: an Avro manifest list as in v3, and manifests in
Parquet whose columns are v3's manifest_entry with its maps. Gives the same `RecordColumns`, by the
same paths of field ids, as the Avro decoder does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from frazil import arrow_compute as pc
from frazil.avro.by_field_id import RecordColumns
from frazil.avro.walker import Path
from frazil.errors import FormatError
from frazil.format.entries import manifest
from frazil.limits import DEFAULT, Limits
from frazil.text_format import first_line

MAGIC: Final = b"PAR1"
_FIELD_ID: Final = b"PARQUET:field_id"


def decode(
    data: bytes, paths: Collection[Path], *, path: str, limits: Limits = DEFAULT
) -> RecordColumns:
    """The wanted leaves of every entry; inside a map, the value under the key a path ends with."""
    try:
        file = pq.ParquetFile(pa.BufferReader(data))
        leaves = dict(_leaves(file.schema_arrow))
        chosen = _chosen(paths, leaves)
        names = sorted({".".join(leaves[leaf]) for leaf in chosen.values()})
        manifest.check_footer(
            file.metadata,
            columns=file.metadata.num_columns,
            stored=len(data),
            limits=limits,
            path=path,
        )
        table = file.read(columns=names, use_threads=False).combine_chunks()
        rows = file.metadata.num_rows
        raw = file.metadata.metadata or {}
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise FormatError(
            f"not a readable Parquet manifest: {first_line(error)}", path=path
        ) from error
    arrays: dict[Path, pa.Array] = {}
    for leaf, column in chosen.items():
        array = _column(table, leaves[column])
        if pa.types.is_map(array.type):
            array = _under_key(array, leaf[-1])
        elif pa.types.is_list(array.type):
            try:
                array = array.cast(pa.list_(pa.int64()))
            except pa.ArrowException as error:
                problem = f"a column is {array.type}; expected a list of numbers"
                raise FormatError(problem, path=path) from error
        if array.null_count < len(array):
            arrays[leaf] = array
    return RecordColumns(
        num_rows=rows,
        metadata={key.decode(): value.decode(errors="replace") for key, value in raw.items()},
        leaves=frozenset(chosen),
        arrays=arrays,
    )


def _leaves(schema: pa.Schema) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Field ids to names, of every field that is not a struct; maps and lists count as one."""

    def below(
        field: pa.Field, ids: Path, names: tuple[str, ...]
    ) -> Iterator[tuple[Path, tuple[str, ...]]]:
        text = (field.metadata or {}).get(_FIELD_ID)
        if text is None:
            return
        ids, names = (*ids, int(text)), (*names, field.name)
        if pa.types.is_struct(field.type):
            for index in range(field.type.num_fields):
                yield from below(field.type.field(index), ids, names)
        else:
            yield ids, names

    for field in schema:
        yield from below(field, (), ())


def _chosen(paths: Collection[Path], leaves: Mapping[Path, object]) -> dict[Path, Path]:
    """Each wanted leaf that the file has, with the column it lies in."""
    chosen = {leaf: leaf for leaf in paths if leaf in leaves}
    chosen |= {leaf: leaf[:-1] for leaf in paths if leaf not in leaves and leaf[:-1] in leaves}
    return chosen


def _column(table: pa.Table, names: tuple[str, ...]) -> pa.Array:
    column = table.column(names[0])
    array = column.chunk(0) if column.num_chunks else pa.array([], column.type)
    for name in names[1:]:
        array = pc.struct_field(array, name)
    return array


def _under_key(array: pa.MapArray, key: int) -> pa.Array:
    """The value under one key of every map; null where the map lacks it."""
    offsets = array.offsets.to_numpy()
    start, end = int(offsets[0]), int(offsets[-1])
    keys = array.keys.slice(start, end - start).to_numpy(zero_copy_only=False)
    owner = np.repeat(np.arange(len(array)), np.diff(offsets))
    matching = np.flatnonzero(keys == key)
    place = np.full(len(array), -1, dtype=np.int64)
    place[owner[matching]] = start + matching
    return array.items.take(pa.array(np.maximum(place, 0), mask=place < 0))
