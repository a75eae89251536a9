"""Evolving schemas, partition specs and sort orders."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from frazil.errors import CommitConflict, InvalidInput, Unsupported
from frazil.iceberg import types as ice
from frazil.iceberg.partitioning import PartitionField
from frazil.iceberg.schema import Schema
from frazil.iceberg.sorting import SortField, SortOrder
from frazil.iceberg.transforms import (
    BucketTransform,
    DayTransform,
    IdentityTransform,
    MonthTransform,
)
from tests.unit.table.evolving import (
    LAST,
    Definition,
    by,
)
from tests.unit.table.evolving import table as table

# --- adding ----------------------------------------------------------------------------------


def test_a_new_column_goes_last_and_takes_the_next_id(table: Definition) -> None:
    assert table.metadata.last_column_id == LAST
    table.columns().add_column("note", "string", doc="free text").commit()
    assert table.names[-1] == "note"
    assert table.field("note") == ice.NestedField(
        LAST + 1, "note", ice.StringType(), required=False, doc="free text"
    )
    assert table.metadata.last_column_id == LAST + 1
    assert table.metadata.current_schema_id == 1


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ({"first": True}, ["new", "id", "qty"]),
        ({"before": "qty"}, ["id", "new", "qty"]),
        ({"after": "id"}, ["id", "new", "qty"]),
        ({"after": "qty"}, ["id", "qty", "new"]),
    ],
)
def test_a_new_column_goes_where_it_is_told(
    table: Definition, place: dict[str, Any], expected: list[str]
) -> None:
    table.columns().add_column("new", "long", **place).commit()
    assert table.names[:3] == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("decimal(10,2)", ice.DecimalType(10, 2)),
        (ice.DoubleType(), ice.DoubleType()),
        (pa.int64(), ice.LongType()),
        (pa.list_(pa.string()), ice.ListType(LAST + 2, ice.StringType(), False)),
        (
            "struct<a: int, b: list<string>>",
            ice.StructType(
                ice.NestedField(LAST + 2, "a", ice.IntegerType(), required=False),
                ice.NestedField(
                    LAST + 3, "b", ice.ListType(LAST + 4, ice.StringType(), False), required=False
                ),
            ),
        ),
        (
            ice.MapType(1, ice.StringType(), 2, ice.LongType(), True),
            ice.MapType(LAST + 2, ice.StringType(), LAST + 3, ice.LongType(), True),
        ),
    ],
)
def test_types_are_text_or_iceberg_or_arrow_and_get_fresh_ids(
    table: Definition, given: Any, expected: ice.IcebergType
) -> None:
    table.columns().add_column("new", given).commit()
    assert table.field("new").field_type == expected
    assert table.field("new").field_id == LAST + 1


def test_columns_are_added_inside_structs_lists_and_maps(table: Definition) -> None:
    table.columns().add_column("point.z", "int", first=True).add_column("spots.y", "float").commit()
    point = table.field("point").field_type
    assert isinstance(point, ice.StructType)
    assert [field.name for field in point.fields] == ["z", "x", "y"]
    assert table.field("spots.element.y").field_id == LAST + 2
    assert table.field("point.x").field_id == 10


def test_a_name_with_a_dot_is_given_as_a_sequence(table: Definition) -> None:
    table.columns().add_column(("a.b",), "int").commit()
    assert table.names[-1] == "a.b"


def test_defaults_are_kept_for_old_and_new_rows(table: Definition) -> None:
    edits = table.columns()
    edits.add_column("status", "string", required=True, default="open")
    edits.add_column("since", "date", default="2024-01-15")
    edits.add_column("rate", "decimal(5,2)", default=Decimal("1.5"))
    edits.add_column("at", "timestamp", default=datetime(2024, 1, 15, 10))
    edits.commit()
    status = table.field("status")
    assert (status.required, status.initial_default, status.write_default) == (True, "open", "open")
    assert table.field("since").initial_default == date(2024, 1, 15)
    assert table.field("rate").write_default == Decimal("1.50")
    assert table.field("at").write_default == datetime(2024, 1, 15, 10)


@pytest.mark.parametrize(
    ("call", "part"),
    [
        ({"path": "qty", "type": "int"}, "column 'qty' already exists"),
        ({"path": "point.x", "type": "int"}, "column 'x' already exists"),
        ({"path": "", "type": "int"}, "not a name for a column"),
        ({"path": " a", "type": "int"}, "not a name for a column"),
        ({"path": "_row_id", "type": "int"}, "metadata column"),
        ({"path": "name.first", "type": "int"}, "'name' is a string"),
        ({"path": "nowhere.x", "type": "int"}, "unknown column 'nowhere'"),
        ({"path": "a", "type": "integr"}, "'integr' is not a type"),
        ({"path": "a", "type": 5}, "type is 5; expected text, a PyIceberg type or an Arrow type"),
        ({"path": "a", "type": "int", "required": True}, "give it a default"),
        ({"path": "a", "type": "int", "default": "x"}, "'x' is not a value of type int"),
        ({"path": "a", "type": "int", "default": 2**40}, "int"),
        ({"path": "a", "type": "date", "default": "soon"}, "not a date"),
        ({"path": "a", "type": "double", "default": float("nan")}, "NaN"),
        ({"path": "a", "type": "list<int>", "default": [1]}, "has no default but null"),
        ({"path": "a", "type": "int", "before": "b"}, "no column 'b'"),
        ({"path": "a", "type": "int", "before": "point.x"}, "no column 'point.x'"),
        ({"path": "a", "type": "int", "before": "id", "after": "id"}, "only one of"),
    ],
)
def test_a_column_that_cannot_be_added_is_refused_and_leaves_no_trace(
    table: Definition, call: dict[str, Any], part: str
) -> None:
    edits = table.columns()
    with pytest.raises(InvalidInput) as caught:
        edits.add_column(call.pop("path"), call.pop("type"), **call)
    assert part in str(caught.value)
    assert not edits.commit().committed
    assert table.changes == []


def test_a_required_column_without_default_can_be_forced(table: Definition) -> None:
    table.columns().add_column("a", "int", required=True, allow_incompatible=True).commit()
    assert table.field("a").required


def test_a_default_of_nanoseconds_is_refused(table: Definition) -> None:
    with pytest.raises(Unsupported):
        table.columns().add_column("a", "timestamp_ns", default=0)


# --- dropping, renaming, moving --------------------------------------------------------------


def test_ids_of_dropped_columns_are_never_used_again(table: Definition) -> None:
    table.columns().drop_column("name").add_column("name", "string").commit()
    assert table.field("name").field_id == LAST + 1
    table.columns().drop_column("name").commit()
    table.columns().add_column("name", "int").commit()
    assert table.field("name").field_id == LAST + 2


def test_nested_columns_are_dropped_renamed_and_moved(table: Definition) -> None:
    edits = table.columns().rename_column("point.y", "why").move("point.why", first=True)
    edits.drop_column("point.x").rename_column("spots.element.x", "left").commit()
    point = table.field("point").field_type
    assert isinstance(point, ice.StructType)
    assert [(field.field_id, field.name) for field in point.fields] == [(11, "why")]
    assert table.field("spots.left").field_id == 13


def test_columns_are_moved_first_before_and_after(table: Definition) -> None:
    table.columns().move("name", first=True).move("id", after="qty").move(
        "ts", before="day"
    ).commit()
    assert table.names == ["name", "qty", "id", "price", "ts", "day", "point", "spots", "props"]


@pytest.mark.parametrize(
    ("verb", "arguments", "part"),
    [
        ("drop_column", ("nme",), "unknown column 'nme'"),
        ("drop_column", ("spots.element",), "cannot be dropped"),
        ("drop_column", ("props.key",), "cannot be dropped"),
        ("rename_column", ("qty", "id"), "column 'id' already exists"),
        ("rename_column", ("qty", ""), "not a name"),
        ("rename_column", ("qty", "_file"), "metadata column"),
        ("rename_column", ("props.value", "v"), "cannot be renamed"),
        ("move", ("qty",), "pass first=True, before= or after="),
    ],
)
def test_what_cannot_be_dropped_renamed_or_moved_is_refused(
    table: Definition, verb: str, arguments: tuple[str, ...], part: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        getattr(table.columns(), verb)(*arguments)
    assert part in str(caught.value)


def test_a_column_is_not_moved_beside_itself(table: Definition) -> None:
    with pytest.raises(InvalidInput, match="beside itself"):
        table.columns().move("qty", after="qty")


def test_the_last_column_stays(table: Definition) -> None:
    edits = table.columns().drop_column("point.x")
    with pytest.raises(InvalidInput, match="only one left"):
        edits.drop_column("point.y")


def test_columns_that_partitioning_sorting_or_identity_need_are_not_dropped() -> None:
    table = Definition(
        by(PartitionField(6, 1000, DayTransform(), "ts_day")),
        SortOrder(SortField(source_id=4, transform=IdentityTransform())),
    )
    with pytest.raises(InvalidInput, match="partitioned by it"):
        table.columns().drop_column("ts")
    with pytest.raises(InvalidInput, match="sorted by it"):
        table.columns().drop_column("name")
    edits = table.columns().set_identifier_fields("id")
    with pytest.raises(InvalidInput, match="identifies rows"):
        edits.drop_column("id")
    table.columns().drop_column("qty").commit()


def test_a_partition_field_keeps_its_name_from_new_columns() -> None:
    table = Definition(by(PartitionField(6, 1000, DayTransform(), "ts_day")))
    with pytest.raises(InvalidInput, match="name of a partition field"):
        table.columns().add_column("ts_day", "int")
    with pytest.raises(InvalidInput, match="name of a partition field"):
        table.columns().rename_column("qty", "ts_day")


# --- changing --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "kind", "expected"),
    [
        ("qty", "long", ice.LongType()),
        ("price", "decimal(20,2)", ice.DecimalType(20, 2)),
        ("day", "timestamp", ice.TimestampType()),
        ("spots.x", "double", ice.DoubleType()),
        ("props.value", "long", ice.LongType()),
        ("qty", "int", ice.IntegerType()),
    ],
)
def test_types_are_widened(
    table: Definition, column: str, kind: str, expected: ice.IcebergType
) -> None:
    table.columns().update_column(column, kind).commit()
    assert table.field(column).field_type == expected


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ("id", "int"),
        ("qty", "double"),
        ("qty", "string"),
        ("price", "decimal(8,2)"),
        ("price", "decimal(20,3)"),
        ("name", "binary"),
        ("day", "timestamptz"),
        ("ts", "date"),
        ("point", "string"),
        ("props.key", "binary"),
    ],
)
def test_no_other_change_of_type_is_legal(table: Definition, column: str, kind: str) -> None:
    with pytest.raises(InvalidInput, match="can only be widened"):
        table.columns().update_column(column, kind)


def test_the_key_of_a_map_stays_as_it_is() -> None:
    table = Definition()
    table.columns().add_column("m", "map<int, int>").commit()
    with pytest.raises(InvalidInput, match="key of a map"):
        table.columns().update_column("m.key", "long")


@pytest.mark.parametrize(
    ("transform", "legal"),
    [
        (DayTransform(), True),
        (MonthTransform(), True),
        (IdentityTransform(), False),
        (BucketTransform(4), False),
    ],
)
def test_a_date_becomes_a_timestamp_only_where_its_partitions_stay(
    transform: Any, legal: bool
) -> None:
    table = Definition(by(PartitionField(5, 1000, transform, "part")))
    edits = table.columns()
    if legal:
        edits.update_column("day", "timestamp").commit()
        assert table.field("day").field_type == ice.TimestampType()
    else:
        with pytest.raises(InvalidInput, match="would get other values"):
            edits.update_column("day", "timestamp")


def test_a_bucketed_int_can_become_a_long() -> None:
    table = Definition(by(PartitionField(2, 1000, BucketTransform(4), "qty_bucket")))
    table.columns().update_column("qty", "long").commit()
    assert table.field("qty").field_type == ice.LongType()


def test_defaults_follow_a_widened_type(table: Definition) -> None:
    table.columns().add_column("since", "date", default="2024-01-15").commit()
    table.columns().update_column("since", "timestamp").commit()
    assert table.field("since").initial_default == datetime(2024, 1, 15)
    assert table.field("since").write_default == datetime(2024, 1, 15)


def test_docs_and_write_defaults_are_changed_and_removed(table: Definition) -> None:
    table.columns().update_column("name", doc="nick name").update_column("qty", default=7).commit()
    assert table.field("name").doc == "nick name"
    assert (table.field("qty").initial_default, table.field("qty").write_default) == (None, 7)
    table.columns().update_column("name", doc=None).update_column("qty", default=None).commit()
    assert table.field("name").doc is None
    assert table.field("qty").write_default is None


def test_required_becomes_optional_and_not_back_without_being_told(table: Definition) -> None:
    table.columns().update_column("id", required=False).commit()
    assert not table.field("id").required
    with pytest.raises(InvalidInput, match="allow_incompatible"):
        table.columns().update_column("id", required=True)
    table.columns().update_column("id", required=True, allow_incompatible=True).commit()
    assert table.field("id").required


# --- identifier fields -----------------------------------------------------------------------


def test_identifier_fields_are_set_and_cleared(table: Definition) -> None:
    table.columns().set_identifier_fields("id").commit()
    assert table.metadata.schema().identifier_field_names() == {"id"}
    with pytest.raises(InvalidInput, match="must stay required"):
        table.columns().update_column("id", required=False)
    table.columns().set_identifier_fields().commit()
    assert table.metadata.schema().identifier_field_ids == []


@pytest.mark.parametrize("column", ["qty", "point.x", "spots.x", "point", "props.key"])
def test_columns_that_cannot_identify_rows_are_refused(table: Definition, column: str) -> None:
    with pytest.raises(InvalidInput, match="cannot identify rows"):
        table.columns().set_identifier_fields(column)


# --- union -----------------------------------------------------------------------------------


def test_union_adds_widens_and_documents_by_name(table: Definition) -> None:
    other = pa.schema(
        [
            pa.field("qty", pa.int64(), metadata={"doc": "how many"}),
            pa.field("id", pa.int32()),
            pa.field("point", pa.struct([("z", pa.float64())])),
            pa.field("spots", pa.list_(pa.struct([("x", pa.float64()), ("y", pa.string())]))),
            pa.field("extra", pa.string(), nullable=False),
        ]
    )
    table.columns().union_by_name(other).commit()
    assert table.field("qty").field_type == ice.LongType()
    assert table.field("qty").doc == "how many"
    assert table.field("id").field_type == ice.LongType()
    assert table.field("id").required
    assert table.field("point.z").field_type == ice.DoubleType()
    assert table.field("spots.x").field_type == ice.DoubleType()
    assert table.field("spots.y").field_type == ice.StringType()
    assert not table.field("extra").required
    assert table.names[-1] == "extra"


def test_union_with_an_iceberg_schema_relaxes(table: Definition) -> None:
    table.columns().union_by_name(Schema(ice.NestedField(99, "id", ice.LongType()))).commit()
    assert not table.field("id").required


def test_union_with_a_frame_takes_its_schema(table: Definition) -> None:
    table.columns().union_by_name(pa.table({"id": [1], "new": ["x"]})).commit()
    assert table.names[-1] == "new"


def test_union_with_the_same_columns_changes_nothing(table: Definition) -> None:
    assert table.columns().union_by_name(table.metadata.schema()).commit().committed is False
    assert table.changes == []


def test_union_lists_every_misfit_and_takes_nothing(table: Definition) -> None:
    edits = table.columns()
    other = pa.schema([("qty", pa.string()), ("new", pa.int32()), ("name", pa.int32())])
    with pytest.raises(InvalidInput) as caught:
        edits.union_by_name(other)
    assert "'qty' cannot change from int to string" in str(caught.value)
    assert "'name' cannot change from string to int" in str(caught.value)
    assert edits.draft_schema == table.metadata.schema()


def test_union_with_something_else_is_refused(table: Definition) -> None:
    with pytest.raises(InvalidInput, match="found int"):
        table.columns().union_by_name(5)


# --- names in any case, ending ---------------------------------------------------------------


def test_names_are_matched_in_any_case_when_asked(table: Definition) -> None:
    with pytest.raises(InvalidInput, match="unknown column 'QTY'"):
        table.columns().drop_column("QTY")
    with pytest.raises(InvalidInput, match="column 'qty' already exists"):
        table.columns(case_sensitive=False).add_column("QTY", "int")
    table.columns(case_sensitive=False).rename_column("QTY", "Quantity").commit()
    assert table.names[1] == "Quantity"


def test_a_with_block_commits_unless_it_fails(table: Definition) -> None:
    with table.columns() as edits:
        edits.add_column("a", "int")
    assert table.names[-1] == "a"
    with pytest.raises(InvalidInput), table.columns() as edits:
        edits.add_column("b", "int").add_column("b", "int")
    assert table.names[-1] == "a"


def test_edits_end_with_their_commit(table: Definition) -> None:
    edits = table.columns().add_column("a", "int")
    edits.commit()
    with pytest.raises(InvalidInput, match="committed already"):
        edits.add_column("b", "int")
    with pytest.raises(InvalidInput, match="committed already"):
        edits.commit()


def test_edits_prepared_on_an_older_schema_conflict(table: Definition) -> None:
    first, second = table.columns().add_column("a", "int"), table.columns().add_column("b", "int")
    first.commit()
    with pytest.raises(CommitConflict):
        second.commit()


def test_going_back_to_an_earlier_schema_reuses_it(table: Definition) -> None:
    table.columns().rename_column("qty", "n").commit()
    table.columns().rename_column("n", "qty").commit()
    assert table.metadata.current_schema_id == 0
    assert len(table.metadata.schemas) == 2
