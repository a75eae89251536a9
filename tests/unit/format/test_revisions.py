"""Two revisions of the content entry: told by shape, converted without loss, never guessed at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frazil.errors import FormatError, InvalidInput, Unsupported
from frazil.format.entries import manifest
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import REVISION_1_12, REVISION_2026_10, Revision
from frazil.format.entries.nest import ColumnNames
from frazil.format.entries.revisions import revision_to_write

NAMES = ColumnNames(partition={1000: "day"})
BOTH = (REVISION_1_12, REVISION_2026_10)
FILE: dict[str, Any] = {
    "tracking.status": 4,
    "tracking.modified_snapshot_id": 77,
    "content_type": 0,
    "location": "data/f.parquet",
    "file_format": "parquet",
    "record_count": 10,
    "file_size_in_bytes": 1000,
}
COUNTS = {"added": 1, "existing": 2, "deleted": 3, "replaced": 4, "modified": 5}
LEAF: dict[str, Any] = {
    **FILE,
    "content_type": 3,
    "location": "metadata/leaf.parquet",
    **{f"manifest_info.{kind}_files_count": count for kind, count in COUNTS.items()},
    **{f"manifest_info.{kind}_rows_count": 10 * count for kind, count in COUNTS.items()},
    "manifest_info.min_sequence_number": 1,
    "manifest_info.format_version": 4,
}
OLD_LEAF: dict[str, Any] = {
    **LEAF,
    "location": "metadata/old.avro",
    "file_format": "avro",
    "spec_id": 3,
    "manifest_info.format_version": 0,
}


def _encoded(rows: list[dict[str, Any]], revision: Revision) -> pa.Buffer:
    return manifest.encode(
        EntryBatch.from_rows(rows), content="root", names=NAMES, codec="zstd", revision=revision
    )


def _decoded(data: pa.Buffer | bytes, **more: Any) -> manifest.Manifest:
    return manifest.decode(data, path="m.parquet", **more)


def _members(data: pa.Buffer, struct: str) -> dict[int, tuple[str, str]]:
    """Field id to name and type, as any Parquet reader sees them."""
    schema = pq.ParquetFile(pa.BufferReader(data)).schema_arrow
    members = schema if not struct else schema.field(struct).type
    return {
        int(field.metadata[b"PARQUET:field_id"]): (field.name, str(field.type)) for field in members
    }


def test_revision_1_12_has_the_fields_of_the_released_library() -> None:
    data = _encoded([LEAF, FILE], REVISION_1_12)
    assert _members(data, "")[157] == ("format_version", "int32")
    assert _members(data, "tracking")[5] == ("dv_snapshot_id", "int64")
    assert _members(data, "manifest_info") == {
        504: ("added_files_count", "int32"),
        505: ("existing_files_count", "int32"),
        506: ("deleted_files_count", "int32"),
        520: ("replaced_files_count", "int32"),
        512: ("added_rows_count", "int64"),
        513: ("existing_rows_count", "int64"),
        514: ("deleted_rows_count", "int64"),
        521: ("replaced_rows_count", "int64"),
        516: ("min_sequence_number", "int64"),
    }


def test_revision_2026_10_has_the_fields_of_the_merged_text() -> None:
    data = _encoded([LEAF, FILE], REVISION_2026_10)
    assert 157 not in _members(data, "")
    assert _members(data, "tracking")[5] == ("modified_snapshot_id", "int64")
    assert _members(data, "manifest_info") == {
        504: ("added_files_count", "int32"),
        505: ("existing_files_count", "int32"),
        506: ("deleted_files_count", "int32"),
        523: ("replaced_files_count", "int32"),
        525: ("modified_files_count", "int32"),
        512: ("added_rows_count", "int64"),
        513: ("existing_rows_count", "int64"),
        514: ("deleted_rows_count", "int64"),
        524: ("replaced_rows_count", "int64"),
        526: ("modified_rows_count", "int64"),
        516: ("min_sequence_number", "int64"),
        521: ("format_version", "int32"),
    }


@pytest.mark.parametrize("revision", BOTH)
def test_a_manifest_says_its_revision_and_comes_back(revision: Revision) -> None:
    data = _encoded([OLD_LEAF, LEAF, FILE], revision)
    read = _decoded(data)
    assert read.revision is revision
    assert manifest.describe(data, path="m.parquet")["revision"] == revision.name
    assert read.batch.pylist("manifest_info.format_version") == [0, 4, None]
    assert read.batch.pylist("tracking.modified_snapshot_id") == [77, 77, 77]
    assert read.batch.row(2) == FILE


@pytest.mark.parametrize("revision", BOTH)
def test_the_version_of_leaves_can_be_asked_for_alone(revision: Revision) -> None:
    read = _decoded(_encoded([OLD_LEAF, FILE], revision), keys=["manifest_info.format_version"])
    assert set(read.batch.keys) == {
        "tracking.status",
        "content_type",
        "manifest_info.format_version",
    }
    assert read.batch.pylist("manifest_info.format_version") == [0, None]


def test_modified_entries_are_among_the_existing_in_1_12() -> None:
    batch = _decoded(_encoded([LEAF, FILE], REVISION_1_12)).batch
    assert batch.pylist("manifest_info.existing_files_count") == [2 + 5, None]
    assert batch.pylist("manifest_info.existing_rows_count") == [20 + 50, None]
    assert batch.pylist("manifest_info.modified_files_count") == [0, None]
    later = manifest.encode(batch, content="root", names=NAMES, codec="zstd")
    again = _decoded(later).batch
    assert again.pylist("manifest_info.existing_files_count") == [7, None]
    assert again.pylist("manifest_info.modified_rows_count") == [0, None]
    assert again.pylist("manifest_info.replaced_files_count") == [4, None]
    assert again.pylist("manifest_info.replaced_rows_count") == [40, None]


def test_a_leaf_has_no_spec_in_2026_10_unless_it_is_carried_over() -> None:
    rows = [OLD_LEAF, {**LEAF, "spec_id": 3}, {**FILE, "spec_id": 3, "partition.1000": 9}]
    assert _decoded(_encoded(rows, REVISION_2026_10)).batch.pylist("spec_id") == [3, None, 3]
    assert _decoded(_encoded(rows, REVISION_1_12)).batch.pylist("spec_id") == [3, 3, 3]


def test_a_partition_of_nulls_is_written_where_there_is_a_spec() -> None:
    batch = EntryBatch.from_rows([{**FILE, "spec_id": 1}, FILE]).with_column(
        "partition.1000", pa.nulls(2, pa.int32())
    )
    data = manifest.encode(batch, content="data", names=NAMES, codec="zstd")
    assert pq.read_table(pa.BufferReader(data)).column("partition").to_pylist() == [
        {"day": None},
        None,
    ]
    older = manifest.encode(
        batch, content="data", names=NAMES, codec="zstd", revision=REVISION_1_12
    )
    assert "partition" not in pq.read_table(pa.BufferReader(older)).column_names


def test_a_property_names_the_revision_to_write() -> None:
    assert revision_to_write({}) is REVISION_2026_10
    assert revision_to_write({"write.format-revision": "1.12"}) is REVISION_1_12
    with pytest.raises(InvalidInput, match=r"is '1.13'; expected 2026-10 or 1.12"):
        revision_to_write({"write.format-revision": "1.13"})


# Files of neither revision


def _changed(revision: Revision, change: Callable[[pa.Table], pa.Table]) -> bytes:
    """A root as another writer could have made it."""
    table = change(pq.read_table(pa.BufferReader(_encoded([LEAF, FILE], revision))))
    sink = pa.BufferOutputStream()
    kept = {"format-version": "4", "content": "root"}
    pq.write_table(table.replace_schema_metadata(kept), sink)
    return bytes(sink.getvalue())


def _member(struct: str, id: int, kind: pa.DataType | None, new_id: int | None = None) -> Any:
    """Drop a member of a struct, or give it another type or id."""

    def change(table: pa.Table) -> pa.Table:
        index = table.column_names.index(struct)
        column = table.column(index).combine_chunks()
        parts: list[pa.Field] = []
        arrays: list[pa.Array] = []
        for field, values in zip(column.type, column.flatten(), strict=True):
            if int(field.metadata[b"PARQUET:field_id"]) != id:
                parts.append(field.with_nullable(True))
                arrays.append(values)
            elif kind is not None:
                metadata = {"PARQUET:field_id": str(new_id or id)}
                parts.append(pa.field(field.name, kind, metadata=metadata))
                arrays.append(values.cast(kind))
        made = pa.StructArray.from_arrays(arrays, fields=parts, mask=column.is_null())
        field = table.schema.field(index).with_type(made.type)
        return table.set_column(index, field, made)

    return change


def _without_157(table: pa.Table) -> pa.Table:
    return table.drop_columns(["format_version"])


def _with_157(table: pa.Table) -> pa.Table:
    field = pa.field("format_version", pa.int32(), metadata={"PARQUET:field_id": "157"})
    return table.append_column(field, pa.array([4] * table.num_rows, pa.int32()))


INT, LONG = pa.int32(), pa.int64()


@pytest.mark.parametrize(
    ("revision", "change", "field", "says"),
    [
        (REVISION_2026_10, _member("manifest_info", 521, LONG), "format_version", "521 is int64"),
        (
            REVISION_2026_10,
            _member("manifest_info", 523, LONG),
            "replaced_files_count",
            "523 is int64",
        ),
        (REVISION_2026_10, _member("manifest_info", 521, None), "format_version", "521 is missing"),
        (
            REVISION_2026_10,
            _member("manifest_info", 526, None),
            "modified_rows_count",
            "526 is missing",
        ),
        (REVISION_2026_10, _member("manifest_info", 523, INT, 520), "", "field 520"),
        (REVISION_2026_10, _member("tracking", 5, INT), "modified_snapshot_id", "5 is int32"),
        (REVISION_2026_10, _with_157, "", "field 523"),
        (REVISION_1_12, _without_157, "", "field 520"),
        (REVISION_1_12, _member("manifest_info", 521, INT), "replaced_rows_count", "521 is int32"),
        (REVISION_1_12, _member("manifest_info", 521, None), "replaced_rows_count", "521 is miss"),
        (REVISION_1_12, _member("manifest_info", 520, INT, 523), "", "field 523"),
        (REVISION_1_12, _member("manifest_info", 520, LONG), "replaced_files_count", "520 is int6"),
    ],
)
def test_ids_and_types_of_no_revision_are_refused(
    revision: Revision, change: Any, field: str, says: str
) -> None:
    data = _changed(revision, change)
    for keys in (None, ("location",)):
        with pytest.raises(FormatError) as error:
            _decoded(data, keys=keys)
        assert error.value.path == "m.parquet"
        assert (error.value.field or "").endswith(field)
        assert says in str(error.value)


def test_the_cardinality_that_early_writers_stored_is_ignored() -> None:
    """Field 523 was a long between 1.12 and 2026-10; a file that has 157 may have it."""

    def more(table: pa.Table) -> pa.Table:
        index = table.column_names.index("manifest_info")
        column = table.column(index).combine_chunks()
        extra = pa.field("dv_cardinality", LONG, metadata={"PARQUET:field_id": "523"})
        made = pa.StructArray.from_arrays(
            [*column.flatten(), pa.array([9, None], LONG)],
            fields=[*(part.with_nullable(True) for part in column.type), extra],
            mask=column.is_null(),
        )
        return table.set_column(index, table.schema.field(index).with_type(made.type), made)

    read = _decoded(_changed(REVISION_1_12, more))
    assert read.revision is REVISION_1_12
    assert read.batch.pylist("manifest_info.replaced_rows_count") == [40, None]


def _with_column_files(values: list[Any]) -> Any:
    ids = pa.field("field_ids", pa.list_(pa.field("element", INT, metadata=_id(162))))
    members = [
        ids.with_metadata(_id(161)),
        pa.field("location", pa.string(), metadata=_id(163)),
        pa.field("file_size_in_bytes", LONG, metadata=_id(164)),
    ]
    kind = pa.list_(pa.field("element", pa.struct(members), metadata=_id(159)))
    field = pa.field("column_files", kind, metadata=_id(158))
    return lambda table: table.append_column(field, pa.array(values, kind))


def _id(number: int) -> dict[str, str]:
    return {"PARQUET:field_id": str(number)}


def test_column_files_are_refused_by_name_with_the_file() -> None:
    columns = [{"field_ids": [2], "location": "data/c.parquet", "file_size_in_bytes": 5}]
    data = _changed(REVISION_2026_10, _with_column_files([None, columns]))
    for keys in (None, ("record_count",)):
        with pytest.raises(Unsupported) as error:
            _decoded(data, keys=keys)
        assert error.value.feature == "column_files"
        assert "m.parquet: data/f.parquet has column_files (field 158)" in str(error.value)


def test_a_column_for_column_files_without_any_is_read() -> None:
    data = _changed(REVISION_2026_10, _with_column_files([None, None]))
    assert _decoded(data).batch.pylist("location") == ["metadata/leaf.parquet", "data/f.parquet"]
