"""Manifests of any columns come back as they were; damaged ones are refused, never guessed at."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frazil.errors import FormatError
from frazil.format.entries import fields, manifest
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import Revision, partition_key, stats_key
from frazil.format.entries.nest import ColumnNames
from frazil.format.entries.stats import TrackedField, stats_columns
from frazil.iceberg import types as ice

_INT, _LONG = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
VALUES: dict[ice.IcebergType, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    ice.BooleanType(): (pa.bool_(), st.booleans()),
    ice.IntegerType(): (pa.int32(), _INT),
    ice.LongType(): (pa.int64(), _LONG),
    ice.FloatType(): (pa.float32(), st.floats(width=32, allow_nan=False)),
    ice.DoubleType(): (pa.float64(), st.floats(allow_nan=False)),
    ice.DateType(): (pa.date32(), _INT),
    ice.TimeType(): (pa.time64("us"), st.integers(0, 86_399_999_999)),
    ice.TimestampType(): (pa.timestamp("us"), _LONG),
    ice.TimestamptzType(): (pa.timestamp("us", "UTC"), _LONG),
    ice.TimestampNanoType(): (pa.timestamp("ns"), _LONG),
    ice.TimestamptzNanoType(): (pa.timestamp("ns", "UTC"), _LONG),
    ice.StringType(): (pa.string(), st.text(max_size=20)),
    ice.UUIDType(): (pa.binary(16), st.binary(min_size=16, max_size=16)),
    ice.FixedType(5): (pa.binary(5), st.binary(min_size=5, max_size=5)),
    ice.BinaryType(): (pa.binary(), st.binary(max_size=20)),
    ice.DecimalType(9, 2): (
        pa.decimal128(9, 2),
        st.integers(-(10**9) + 1, 10**9 - 1).map(lambda n: Decimal(n).scaleb(-2)),
    ),
    ice.DecimalType(38, 10): (
        pa.decimal128(38, 10),
        st.integers(-(10**20), 10**20).map(lambda n: Decimal(n).scaleb(-10)),
    ),
}
_COUNTED = ice.ListType(element_id=900, element_type=ice.LongType(), element_required=False)


def _value(name: str, kind: ice.IcebergType) -> st.SearchStrategy[Any]:
    if name in ("lower_bound", "upper_bound"):
        return VALUES[kind][1]
    if name == "tight_bounds":
        return st.booleans()
    return st.integers(0, 2**31 - 1)


_COUNT = st.integers(0, 2**30 - 1)  # two of them are added to an int
_INFO = tuple(
    key
    for key, field in fields.REVISION_2026_10.leaves.items()
    if key.startswith("manifest_info.") and field.required
)
_names = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=12)
_FIXED: dict[str, st.SearchStrategy[Any]] = {
    "tracking.snapshot_id": _LONG,
    "tracking.first_row_id": _LONG,
    "tracking.deleted_positions": st.binary(max_size=30),
    "sort_order_id": _INT,
    "key_metadata": st.binary(max_size=10),
    "split_offsets": st.lists(_LONG, max_size=3),
    "equality_ids": st.lists(_INT, max_size=3),
    "referenced_file": st.text(max_size=10),
}


@st.composite
def manifests(draw: st.DrawFn) -> tuple[EntryBatch, ColumnNames]:
    """Entries of files and leaves with statistics and partitions of any types."""
    rows = draw(st.integers(1, 6))
    kinds = draw(st.lists(st.sampled_from([*VALUES, _COUNTED]), max_size=6))
    parts = draw(st.lists(st.sampled_from(list(VALUES)), max_size=3))
    content = draw(st.lists(st.sampled_from([0, 2, 3, 4]), min_size=rows, max_size=rows))

    def column(values: st.SearchStrategy[Any], *, nulls: bool = True) -> list[Any]:
        chosen = st.one_of(st.none(), values) if nulls else values
        return draw(st.lists(chosen, min_size=rows, max_size=rows))

    columns: dict[str, pa.Array] = {
        "tracking.status": pa.array(column(st.integers(0, 4), nulls=False), pa.int32()),
        "content_type": pa.array(content, pa.int32()),
        "location": pa.array(column(st.text(max_size=30), nulls=False), pa.string()),
        "file_format": pa.array(column(st.sampled_from(["parquet", "avro"]), nulls=False)),
        "record_count": pa.array(column(_LONG, nulls=False), pa.int64()),
        "file_size_in_bytes": pa.array(column(_LONG, nulls=False), pa.int64()),
    }
    if any(kind >= 3 for kind in content):
        for key in _INFO:
            values = st.sampled_from([0, 4]) if key.endswith("format_version") else _COUNT
            present = [
                value if entry >= 3 else None
                for value, entry in zip(column(values, nulls=False), content, strict=True)
            ]
            columns[key] = pa.array(present, fields.LEAVES[key].type)
    for key, values in _FIXED.items():
        if draw(st.booleans()):
            columns[key] = pa.array(column(values), fields.LEAVES[key].type)
    specs = column(st.integers(0, 3))
    columns["spec_id"] = pa.array(specs, pa.int32())
    for index, kind in enumerate(parts):
        arrow, values = VALUES[kind]
        present = [
            value if spec is not None and entry < 3 else None
            for value, spec, entry in zip(column(values), specs, content, strict=True)
        ]
        columns[partition_key(1000 + index)] = pa.array(present, arrow)
    uuids: set[str] = {
        partition_key(1000 + index) for index, kind in enumerate(parts) if kind == ice.UUIDType()
    }
    for index, kind in enumerate(kinds):
        field_id = index + 1
        for stat in stats_columns(TrackedField(id=field_id, full_name="", type=kind)):
            name = stat.key.rpartition(".")[2]
            if draw(st.booleans()):
                columns[stat.key] = pa.array(column(_value(name, kind)), stat.type)
            if kind == ice.UUIDType() and name.endswith("bound"):
                uuids.add(stat.key)
    names = ColumnNames(
        partition={1000 + index: draw(_names) for index in range(len(parts))},
        uuids=frozenset(uuids),
    )
    return EntryBatch(pa.table(columns)), names


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    manifests(),
    st.sampled_from(["zstd", "lz4", "snappy", "gzip", "none", None]),
    st.sampled_from([fields.REVISION_1_12, fields.REVISION_2026_10]),
    st.data(),
)
def test_a_manifest_comes_back_as_it_was(
    made: tuple[EntryBatch, ColumnNames], codec: str | None, revision: Revision, data: st.DataObject
) -> None:
    batch, names = made
    encoded = manifest.encode(batch, content="root", names=names, codec=codec, revision=revision)
    read = manifest.decode(encoded, path="m.parquet")
    assert read.revision is revision
    back = read.batch
    expected = _expected(_as_revised(batch, revision))
    if revision is fields.REVISION_2026_10 and "spec_id" in expected:
        # A file with a spec has a partition, if only of nulls.
        parts = [key for key in batch.keys if key.startswith("partition.")]
        expected |= {key: _plain(batch.column(key)) for key in parts}
    assert set(back.keys) == set(expected)
    for key, values in expected.items():
        assert back.column(key).type == batch.column(key).type or key.endswith("tight_bounds")
        assert _plain(back.column(key)) == values, key

    asked = data.draw(st.sets(st.sampled_from(sorted(expected))))
    some = manifest.decode(encoded, path="m.parquet", keys=asked).batch
    assert set(some.keys) == asked | {"tracking.status", "content_type"}
    for key in asked:
        assert _plain(some.column(key)) == expected[key]


def _as_revised(batch: EntryBatch, revision: Revision) -> EntryBatch:
    """What a manifest of this revision can say of the entries."""
    changed = ("spec_id", "referenced_file", *_INFO)
    rows = batch.select(["content_type", *changed]).table.to_pylist()
    for row in rows:
        if revision is fields.REVISION_1_12:
            for what in ("files", "rows") if row["content_type"] >= 3 else ():
                modified = f"manifest_info.modified_{what}_count"
                row[f"manifest_info.existing_{what}_count"] += row[modified]
                row[modified] = 0
        else:
            row["referenced_file"] = None
            if row["content_type"] >= 3 and row["manifest_info.format_version"] != 0:
                row["spec_id"] = None
    for key in changed:
        if batch.has(key):
            batch = batch.with_column(key, [row[key] for row in rows])
    return batch


def _plain(column: pa.ChunkedArray) -> list[Any]:
    """Values that compare equal exactly: times and dates as numbers, floats as bits."""
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        column = column.cast(pa.int64())
    elif pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    values = column.to_pylist()
    if pa.types.is_floating(kind):
        return [None if value is None else float(value).hex() for value in values]
    return list(values)


def _expected(batch: EntryBatch) -> dict[str, list[Any]]:
    """Columns that have a value; `tight_bounds` is false where a column's other statistics are."""
    columns = {key: _plain(batch.column(key)) for key in batch.keys}
    expected = {key: values for key, values in columns.items() if values.count(None) < len(values)}
    ids = {key.split(".")[1] for key in expected if key.startswith("content_stats.")}
    for field_id in ids:
        mine = [v for key, v in expected.items() if key.startswith(f"content_stats.{field_id}.")]
        key = stats_key(int(field_id), "tight_bounds")
        tight = expected.get(key, [None] * batch.num_rows)
        expected[key] = [
            None if all(value is None for value in others) else bool(known)
            for known, others in zip(tight, zip(*mine, strict=True), strict=True)
        ]
    return expected


def _entries(count: int) -> EntryBatch:
    types = {
        stats_key(1, "lower_bound"): pa.int64(),
        stats_key(1, "upper_bound"): pa.int64(),
        stats_key(2, "lower_bound"): pa.string(),
    }
    return EntryBatch.from_rows(
        [
            {
                "tracking.status": 1,
                "tracking.snapshot_id": 2**61 + index,
                "content_type": 0,
                "location": f"data/part-{index:05d}.parquet",
                "file_format": "parquet",
                "record_count": 1000 + index,
                "file_size_in_bytes": 2**20 + index,
                "split_offsets": [4, 1000 + index],
                stats_key(1, "lower_bound"): index * 10,
                stats_key(1, "upper_bound"): index * 10 + 9,
                stats_key(2, "lower_bound"): f"name {index}",
            }
            for index in range(count)
        ],
        types,
    )


_NAMES = ColumnNames(partition={})


def _files(count: int) -> dict[str, bytes]:
    batch = _entries(count)
    return {
        codec: manifest.encode(batch, content="data", names=_NAMES, codec=codec).to_pybytes()
        for codec in ("zstd", "lz4", "none")
    }


_SMALL, _LARGE = _files(40), _files(2_000)
_WHOLE = {data: manifest.decode(data, path="m.parquet").batch for data in _SMALL.values()}
_WHOLE |= {data: manifest.decode(data, path="m.parquet").batch for data in _LARGE.values()}
small, large = st.sampled_from(sorted(_SMALL.values())), st.sampled_from(sorted(_LARGE.values()))


def _footer_at(data: bytes) -> int:
    return len(data) - 8 - int.from_bytes(data[-8:-4], "little")


def _decoded(data: bytes) -> EntryBatch | None:
    try:
        return manifest.decode(data, path="m.parquet").batch
    except FormatError as refused:
        if refused.path != "m.parquet":
            raise
        return None


def _damaged(data: bytes, first: int, last: int, draw: st.DataObject) -> bytes:
    changed = bytearray(data)
    for _ in range(draw.draw(st.integers(1, 2))):
        changed[draw.draw(st.integers(first, last))] ^= draw.draw(st.integers(1, 255))
    return bytes(changed)


@settings(max_examples=500, deadline=None)
@given(small, st.data())
def test_any_damage_to_a_small_manifest_is_refused_or_changes_nothing(
    data: bytes, draw: st.DataObject
) -> None:
    found = _decoded(_damaged(data, 0, len(data) - 1, draw))
    assert found is None or found.table.equals(_WHOLE[data].table)


@settings(max_examples=300, deadline=None)
@given(large, st.data(), st.booleans())
def test_any_damage_to_a_large_manifest_is_refused_or_changes_nothing(
    data: bytes, draw: st.DataObject, in_footer: bool
) -> None:
    first = _footer_at(data) if in_footer else 0
    found = _decoded(_damaged(data, first, len(data) - 1, draw))
    assert found is None or found.table.equals(_WHOLE[data].table)


@settings(max_examples=150, deadline=None)
@given(st.one_of(small, large), st.data())
def test_a_manifest_cut_short_or_long_is_refused(data: bytes, draw: st.DataObject) -> None:
    assert _decoded(data[: draw.draw(st.integers(0, len(data) - 1))]) is None
    assert _decoded(data + draw.draw(st.binary(min_size=1, max_size=20))) is None


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=300))
def test_bytes_that_are_no_manifest_are_refused(data: bytes) -> None:
    assert _decoded(data) is None
    assert _decoded(b"PAR1" + data + b"PAR1") is None
