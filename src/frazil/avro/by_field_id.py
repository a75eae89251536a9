"""Avro files as Arrow columns by Iceberg field ids, decoded in bulk.

Blocks come from `frazil.avro.container`. Where records start inside a block is found by
`frazil.avro.record_starts`; they are read in step, see `frazil.avro.walker`. Any schema is read;
leaves are named by a path of field ids, and only those asked for are decoded:

    (2, 100)        field 100 of the record in field 2
    (2, 125, 7)     the value under key 7 of the map in field 125
    (507, 0, 510)   field 510 of the first record of the list in field 507
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from frazil.avro import avro_types
from frazil.avro.avro_types import AvroType
from frazil.avro.container import read_header, stretches
from frazil.avro.record_starts import walk
from frazil.avro.walker import Captured, Longs, Path, Walker, list_array, text_array
from frazil.errors import FormatError
from frazil.limits import DEFAULT, Limits
from frazil.value_classes import frozen


@frozen
class RecordColumns:
    """Leaves of a file's records, by path. A wanted leaf that no record has is absent."""

    num_rows: int
    metadata: Mapping[str, str]
    leaves: frozenset[Path]
    """Wanted leaves that the file's schema has, whether or not a record does."""
    arrays: Mapping[Path, pa.Array]
    """int64, float32, float64, bool, string, binary, fixed-size binary or list<int64>."""


def decode(
    data: bytes,
    paths: Collection[Path],
    *,
    path: str | None = None,
    domains: Mapping[Path, int] | None = None,
    limits: Limits = DEFAULT,
) -> RecordColumns:
    """The wanted leaves of every record, in file order.

    `domains` gives, for numeric leaves known to be small, the number of values they may take from
    zero on; it only helps to find where records start. `path` names the file in errors.
    """
    header = read_header(data, path=path)
    if header.schema.kind != "record":
        raise FormatError("its records are not of type record", path=path, field="avro.schema")
    plan = avro_types.steps(header.schema, frozenset(paths))
    parts: list[dict[Path, pa.Array]] = []
    rows: list[int] = []
    for blocks in stretches(data, header, limits=limits, path=path):
        walker, keep = walk(blocks, header.schema, plan, domains or {}, path)
        parts.append(_arrays(walker, keep, header.schema, path))
        rows.append(walker.count if keep is None else len(keep))
    values = dict.fromkeys(leaf for part in parts for leaf in part)
    arrays = {leaf: _join(leaf, parts, rows) for leaf in values}
    return RecordColumns(
        num_rows=sum(rows),
        metadata=header.metadata,
        leaves=avro_types.leaves_among(header.schema, frozenset(paths)),
        arrays=arrays,
    )


def _arrays(
    walker: Walker, keep: Longs | None, schema: AvroType, path: str | None
) -> dict[Path, pa.Array]:
    """What a walk captured, as Arrow arrays of the kept records."""
    arrays: dict[Path, pa.Array] = {}
    for leaf, column in walker.captured.items():
        captured = column if keep is None else _kept(column, keep)
        if not captured.valid.any():
            continue
        if column.lengths is None:
            arrays[leaf] = _plain_array(captured)
            continue
        if _is_run(schema, leaf):
            continue
        type_ = schema.at(leaf)
        if type_ is not None and type_.kind == "array":
            later = [
                other if keep is None else _kept(other, keep)
                for further, other in walker.captured.items()
                if further[:-1] == leaf
            ]
            arrays[leaf] = list_array(walker, captured, later)
        else:
            is_string = type_ is not None and type_.kind == "string"
            text = text_array(walker, captured, pa.string() if is_string else pa.binary())
            if is_string:
                try:
                    text.validate(full=True)
                except pa.ArrowInvalid as error:
                    raise FormatError(f"a string is not UTF-8: {error}", path=path) from error
            arrays[leaf] = text
    return arrays


def _is_run(schema: AvroType, leaf: Path) -> bool:
    """Whether the leaf is a later run of a list of numbers, already part of that list."""
    parent = schema.at(leaf[:-1])
    return (
        parent is not None
        and parent.kind == "array"
        and parent.items is not None
        and parent.items.is_number
    )


def _kept(column: Captured, keep: Longs) -> Captured:
    lengths = None if column.lengths is None else column.lengths[keep]
    return Captured(column.values[keep], column.valid[keep], lengths)


def _plain_array(column: Captured) -> pa.Array:
    mask: Any = None if column.valid.all() else ~column.valid
    if column.values.ndim == 1:
        return pa.array(column.values, mask=mask)
    width = column.values.shape[1]
    flat = pa.py_buffer(np.ascontiguousarray(column.values))
    validity = None if mask is None else pa.array(column.valid).buffers()[1]
    return pa.Array.from_buffers(pa.binary(width), len(column.values), [validity, flat])


def _join(leaf: Path, parts: list[dict[Path, pa.Array]], rows: list[int]) -> pa.Array:
    type_ = next(part[leaf].type for part in parts if leaf in part)
    pieces = [
        part[leaf] if leaf in part else pa.nulls(count, type_)
        for part, count in zip(parts, rows, strict=True)
    ]
    return pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)
