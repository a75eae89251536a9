"""Field 158 of an entry: one shape is read and written, everything else is refused by name."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frazil.errors import FormatError, FrazilError, Unsupported
from frazil.format.entries import manifest
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.column_files import ColumnFile, column_files_of, with_column_files
from frazil.format.entries.fields import REVISION_1_12
from frazil.format.entries.nest import ColumnNames

NAMES = ColumnNames(partition={})
ENTRY = {
    "tracking.status": 1,
    "tracking.snapshot_id": 7,
    "tracking.sequence_number": 1,
    "tracking.file_sequence_number": 1,
    "tracking.first_row_id": 0,
    "content_type": 0,
    "location": "data/f.parquet",
    "file_format": "parquet",
    "record_count": 3,
    "file_size_in_bytes": 100,
}
FILE = ColumnFile(
    location="data/c.parquet", field_ids=(2, 5), file_format="parquet", file_size_in_bytes=9
)


def encoded(batch: EntryBatch, **options: Any) -> pa.Buffer:
    return manifest.encode(batch, content="root", names=NAMES, codec="zstd", **options)


def entries(count: int = 2) -> EntryBatch:
    return EntryBatch.from_rows(
        [{**ENTRY, "location": f"data/{at}.parquet"} for at in range(count)]
    )


def test_entries_have_their_column_files_again() -> None:
    written = with_column_files(entries(), [(), (FILE,)])
    data = encoded(written)
    for keys in (None, ("record_count",)):
        read = manifest.decode(data, path="m.parquet", keys=keys).batch
        assert column_files_of(read) == [(), (FILE,)]
    stored = pq.read_table(pa.BufferReader(data)).schema.field("column_files")
    ids = [stored, stored.type.value_field, *stored.type.value_type]
    assert [field.metadata[b"PARQUET:field_id"] for field in ids] == [
        b"158",
        b"159",
        b"160",
        b"161",
        b"163",
        b"164",
        b"165",
    ]
    element = stored.type.value_type.field("field_ids").type.value_field
    assert element.metadata[b"PARQUET:field_id"] == b"162"


def test_entries_without_column_files_are_the_same_bytes() -> None:
    assert encoded(with_column_files(entries(), [(), ()])).equals(encoded(entries()))


def test_revision_1_12_has_none() -> None:
    with pytest.raises(Unsupported, match="compact the table with merge_columns=True"):
        encoded(with_column_files(entries(1), [(FILE,)]), revision=REVISION_1_12)


def _id(number: int) -> dict[str, str]:
    return {"PARQUET:field_id": str(number)}


def with_field(members: list[pa.Field], value: list[dict[str, Any]]) -> bytes:
    """A manifest with a field 158 of another shape."""
    kind = pa.list_(pa.field("element", pa.struct(members), metadata=_id(159)))
    field = pa.field("column_files", kind, metadata=_id(158))
    table = pq.read_table(pa.BufferReader(encoded(entries(1))))
    sink = pa.BufferOutputStream()
    metadata = {"format-version": "4", "content": "root"}
    table = table.append_column(field, pa.array([value], kind)).replace_schema_metadata(metadata)
    pq.write_table(table, sink)
    return bytes(sink.getvalue())


IDS = pa.list_(pa.field("element", pa.int32(), metadata=_id(162)))
OCTOBER = [
    pa.field("location", pa.string(), metadata=_id(160)),
    pa.field("field_ids", IDS, metadata=_id(161)),
    pa.field("file_format", pa.string(), metadata=_id(163)),
    pa.field("file_size_in_bytes", pa.int64(), metadata=_id(164)),
    pa.field("key_metadata", pa.binary(), metadata=_id(165)),
]
JUNE = [
    pa.field("field_ids", IDS, metadata=_id(161)),
    pa.field("location", pa.string(), metadata=_id(163)),
    pa.field("file_size_in_bytes", pa.int64(), metadata=_id(164)),
]
AUGUST = [
    pa.field("format_version", pa.int32(), metadata=_id(161)),
    pa.field("field_ids", pa.list_(pa.int32()), metadata=_id(162)),
    pa.field("location", pa.string(), metadata=_id(164)),
    pa.field("file_format", pa.string(), metadata=_id(165)),
]
GOOD: dict[str, Any] = {
    "location": "data/c.parquet",
    "field_ids": [2],
    "file_format": "parquet",
    "file_size_in_bytes": 9,
}


def test_names_do_not_matter() -> None:
    renamed = [field.with_name(f"m{at}") for at, field in enumerate(OCTOBER)]
    value = [{f"m{at}": GOOD.get(field.name) for at, field in enumerate(OCTOBER)}]
    read = manifest.decode(with_field(renamed[::-1], value), path="m.parquet").batch
    assert column_files_of(read) == [(ColumnFile(**{**GOOD, "field_ids": (2,)}),)]


@pytest.mark.parametrize(
    ("members", "value", "error", "message"),
    [
        (JUNE, {"location": "c"}, Unsupported, "the shape of June 2026"),
        (AUGUST, {"location": "c"}, Unsupported, "the shape of August 2026"),
        (OCTOBER[1:], {"field_ids": [1]}, Unsupported, "the shape of June 2026"),
        (OCTOBER[:3], GOOD, Unsupported, "field 164 is missing"),
        (OCTOBER, {**GOOD, "field_ids": []}, FormatError, "lacks its location"),
        (OCTOBER, {**GOOD, "location": None}, FormatError, "lacks its location"),
        (OCTOBER, {**GOOD, "file_format": "orc"}, Unsupported, "only parquet"),
        (OCTOBER, {**GOOD, "key_metadata": b"k"}, Unsupported, "is encrypted"),
        (OCTOBER, {**GOOD, "field_ids": [2, 2]}, FormatError, "field 2 is in"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_file(
    members: list[pa.Field], value: dict[str, Any], error: type[FrazilError], message: str
) -> None:
    known = {field.name for field in members}
    data = with_field(members, [{name: v for name, v in value.items() if name in known}])
    for keys in (None, ("record_count",)):
        with pytest.raises(error, match=message) as raised:
            manifest.decode(data, path="m.parquet", keys=keys)
        assert "data/0.parquet" in str(raised.value)


def test_a_field_in_two_files_is_refused() -> None:
    data = with_field(OCTOBER, [GOOD, {**GOOD, "location": "data/d.parquet"}])
    with pytest.raises(FormatError, match=r"field 2 is in data/c\.parquet and in data/d\.parquet"):
        manifest.decode(data, path="m.parquet")


def test_those_of_a_leaf_are_refused() -> None:
    leaf = {**ENTRY, "content_type": 3, "location": "metadata/l.parquet"}
    leaf |= {
        f"manifest_info.{kind}_{what}_count": 0
        for kind in ("added", "existing", "deleted", "replaced", "modified")
        for what in ("files", "rows")
    }
    leaf |= {"manifest_info.min_sequence_number": 0, "manifest_info.format_version": 4}
    data = encoded(with_column_files(EntryBatch.from_rows([leaf]), [(FILE,)]))
    with pytest.raises(Unsupported, match="a manifest with column_files"):
        manifest.decode(data, path="m.parquet")


def test_a_quick_manifest_compresses_columns_of_text_well_and_others_fast() -> None:
    batch = with_column_files(EntryBatch.from_rows([ENTRY]), [(FILE,)])
    data = manifest.encode(batch, content="root", names=NAMES, codec=None)
    group = pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(0)
    columns = [group.column(at) for at in range(group.num_columns)]
    codecs = {column.path_in_schema: column.compression for column in columns}
    texts = {"location", "file_format", "column_files.list.element.location"}
    assert {path for path, codec in codecs.items() if codec == "ZSTD"} >= texts
    assert codecs["record_count"] == codecs["column_files.list.element.field_ids.list.element"]
    assert codecs["record_count"] == "LZ4"
