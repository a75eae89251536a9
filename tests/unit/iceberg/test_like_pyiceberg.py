"""Our types, schemas, specs, orders and transforms say what PyIceberg's say."""

from __future__ import annotations

import pickle
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from pyiceberg import expressions as theirs
from pyiceberg import types as peer
from pyiceberg.partitioning import PartitionField as PeerField
from pyiceberg.partitioning import PartitionSpec as PeerSpec
from pyiceberg.schema import Schema as PeerSchema
from pyiceberg.schema import assign_fresh_schema_ids
from pyiceberg.table.sorting import NullOrder as PeerNullOrder
from pyiceberg.table.sorting import SortDirection as PeerDirection
from pyiceberg.table.sorting import SortField as PeerSortField
from pyiceberg.table.sorting import SortOrder as PeerOrder
from pyiceberg.transforms import BucketTransform as PeerBucket
from pyiceberg.transforms import parse_transform as peer_transform

import frazil
from frazil.errors import InvalidInput
from frazil.filter.text.filter_text import parse
from frazil.iceberg import types as ice
from frazil.iceberg.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    Not,
    Op,
    Or,
    Reference,
    UnboundPredicate,
)
from frazil.iceberg.literals import literal
from frazil.iceberg.name_mapping import parse_mapping
from frazil.iceberg.partitioning import (
    PartitionSpec,
    load_spec,
    partition_field,
    spec_document,
)
from frazil.iceberg.pyiceberg_values import (
    from_pyiceberg,
    is_pyiceberg,
    pyiceberg_expression,
    pyiceberg_order,
    pyiceberg_schema,
    pyiceberg_spec,
    pyiceberg_type,
)
from frazil.iceberg.schema import (
    Schema,
    freshly_numbered,
    load_schema,
    prune_columns,
    schema_document,
)
from frazil.iceberg.sorting import load_order, order_document
from frazil.iceberg.transforms import (
    BucketTransform,
    JointBucketTransform,
    TruncateTransform,
    UnknownTransform,
    parse_transform,
)

PRIMITIVES = [
    peer.BooleanType(),
    peer.IntegerType(),
    peer.LongType(),
    peer.FloatType(),
    peer.DoubleType(),
    peer.DateType(),
    peer.TimeType(),
    peer.TimestampType(),
    peer.TimestamptzType(),
    peer.TimestampNanoType(),
    peer.TimestamptzNanoType(),
    peer.StringType(),
    peer.UUIDType(),
    peer.BinaryType(),
    peer.UnknownType(),
    peer.FixedType(7),
    peer.DecimalType(38, 0),
    peer.DecimalType(9, 2),
    peer.GeometryType(),
    peer.GeometryType("EPSG:4326"),
    peer.GeographyType(),
    peer.GeographyType("EPSG:4326"),
    peer.GeographyType("EPSG:4326", "karney"),
]
TRANSFORMS = (
    "identity",
    "void",
    "bucket[16]",
    "truncate[4]",
    "year",
    "month",
    "day",
    "hour",
)


def nested() -> PeerSchema:
    """A schema with everything inside everything."""
    place = peer.StructType(
        peer.NestedField(21, "lat", peer.DoubleType(), required=True),
        peer.NestedField(20, "lon", peer.DoubleType(), required=False, doc="east is positive"),
    )
    return PeerSchema(
        peer.NestedField(3, "id", peer.LongType(), required=True, doc="key"),
        peer.NestedField(1, "places", peer.ListType(4, place, element_required=False)),
        peer.NestedField(
            2, "by_day", peer.MapType(5, peer.DateType(), 6, peer.ListType(7, peer.StringType()))
        ),
        peer.NestedField(8, "by_place", peer.MapType(9, place_of(30), 10, place_of(40), False)),
        peer.NestedField(
            11,
            "outer",
            peer.StructType(
                peer.NestedField(12, "name", peer.StringType(), required=True),
                peer.NestedField(13, "tags", peer.ListType(14, peer.ListType(15, place_of(50)))),
            ),
            required=True,
        ),
        schema_id=4,
        identifier_field_ids=[3, 12],
    )


def place_of(first: int) -> peer.StructType:
    """A struct whose ids begin with a number."""
    return peer.StructType(
        peer.NestedField(first, "x", peer.DoubleType()),
        peer.NestedField(first + 1, "y", peer.DecimalType(9, 2)),
    )


@pytest.mark.parametrize("kind", PRIMITIVES, ids=str)
def test_a_type_is_written_read_and_shown_alike(kind: peer.PrimitiveType) -> None:
    own = from_pyiceberg(kind)
    assert isinstance(own, ice.PrimitiveType)
    assert (str(own), repr(own)) == (str(kind), repr(kind))
    assert own == ice.primitive_type(str(kind))
    assert hash(own) == hash(ice.primitive_type(str(kind)))
    assert own.minimum_format_version() == kind.minimum_format_version()
    assert pyiceberg_type(own) == kind
    assert pickle.loads(pickle.dumps(own)) == own
    assert not own.is_struct


def test_types_differ_when_what_they_say_does() -> None:
    kinds = [from_pyiceberg(kind) for kind in PRIMITIVES]
    assert len({*kinds}) == len(kinds)
    assert ice.LongType() != "long"


@pytest.mark.parametrize(
    "text",
    ["", "text", "decimal(39, 0)", "decimal(0, 0)", "decimal(9)", "fixed", "fixed[x]", "geom"],
)
def test_a_name_that_is_no_type_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"type|digits"):
        ice.primitive_type(text)


def test_types_are_read_without_blanks_and_quotes() -> None:
    assert ice.primitive_type("decimal(9,2)") == ice.DecimalType(9, 2)
    assert ice.primitive_type("geometry(srid:3857)") == ice.GeometryType("srid:3857")
    assert ice.primitive_type("geography(EPSG:4326, karney)") == ice.GeographyType(
        "EPSG:4326", "karney"
    )


@pytest.mark.parametrize("text", TRANSFORMS)
@pytest.mark.parametrize("kind", PRIMITIVES, ids=str)
def test_a_transform_takes_and_gives_the_same_types(text: str, kind: peer.PrimitiveType) -> None:
    own, peers = parse_transform(text), peer_transform(text)
    assert str(own) == str(peers)
    source = from_pyiceberg(kind)
    assert own.can_transform(source) == peers.can_transform(kind)
    if peers.can_transform(kind):
        assert str(own.result_type(source)) == str(peers.result_type(kind))
    assert own.preserves_order == (peers.preserves_order and text != "void")


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("identity", peer.DateType(), 19_737),
        ("identity", peer.DateType(), -1),
        ("identity", peer.TimeType(), 3_600_000_001),
        ("identity", peer.TimestampType(), -1),
        ("identity", peer.TimestamptzType(), 1_700_000_000_000_001),
        ("identity", peer.BooleanType(), True),
        ("identity", peer.DecimalType(9, 2), Decimal("1.50")),
        ("identity", peer.BinaryType(), b"\x00\xff"),
        ("identity", peer.StringType(), "a b"),
        ("identity", peer.DoubleType(), 0.1),
        ("year", peer.IntegerType(), -1971),
        ("year", peer.IntegerType(), 54),
        ("month", peer.IntegerType(), -1),
        ("month", peer.IntegerType(), 648),
        ("day", peer.DateType(), 19_737),
        ("hour", peer.IntegerType(), -25),
        ("bucket[16]", peer.IntegerType(), 3),
        ("truncate[4]", peer.BinaryType(), b"\x00\xff"),
        ("truncate[4]", peer.StringType(), "abcd"),
        ("void", peer.StringType(), None),
        ("identity", peer.StringType(), None),
        ("day", peer.DateType(), None),
    ],
)
def test_results_are_shown_alike(text: str, kind: peer.PrimitiveType, value: Any) -> None:
    shown = parse_transform(text).to_human_string(from_pyiceberg(kind), value)
    assert shown == peer_transform(text).to_human_string(kind, value)


@pytest.mark.parametrize("text", ["bucket", "bucket[x]", "truncate", "bucket[0]", "truncate[0]"])
def test_a_transform_without_its_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"number|width"):
        parse_transform(text)


def test_transforms_of_several_columns_are_other_ones() -> None:
    joint = parse_transform("bucket[16]", sources=2)
    assert joint == JointBucketTransform(16)
    assert joint != BucketTransform(16)
    assert parse_transform("zorder", sources=2) == UnknownTransform("zorder")
    assert parse_transform("truncate[3]", sources=2) == UnknownTransform("truncate[3]")
    assert parse_transform("truncate[3]") == TruncateTransform(3)
    assert parse_transform("void", sources=3) == parse_transform("void")


def test_a_schema_is_indexed_alike() -> None:
    peers = nested()
    own = from_pyiceberg(peers)
    assert str(own) == str(peers)
    assert schema_document(own) == peers.model_dump(mode="json")
    assert load_schema(peers.model_dump(mode="json")) == own
    assert pyiceberg_schema(own) == peers
    assert pyiceberg_schema(own).schema_id == 4
    assert own.field_ids == peers.field_ids
    assert own.highest_field_id == peers.highest_field_id
    assert sorted(own.column_names) == sorted(peers.column_names)
    assert own.identifier_field_names() == peers.identifier_field_names()
    for name, field_id in peers._name_to_id.items():  # short names of list and map parts too
        assert own.find_field(name).field_id == field_id
        assert own.find_field(name.upper(), case_sensitive=False).field_id == field_id
        assert own.find_column_name(field_id) == peers.find_column_name(field_id)
        assert str(own.find_type(field_id)) == str(peers.find_type(field_id))
    assert own.parent_ids == peers._lazy_id_to_parent
    assert pickle.loads(pickle.dumps(own)) == own
    for missing in ("nothing", 99):
        with pytest.raises(ValueError, match="Could not find"):
            own.find_field(missing)


def test_a_name_mapping_is_made_and_read_alike() -> None:
    peers = nested()
    mapping = from_pyiceberg(peers).name_mapping
    assert mapping.json() == peers.name_mapping.model_dump_json()
    assert parse_mapping(mapping.json()) == mapping
    for bad in ("{}", '[{"names": "a"}]', '[{"field-id": "1", "names": []}]', "[1]"):
        with pytest.raises(ValueError, match=r"names|list|number"):
            parse_mapping(bad)


@pytest.mark.parametrize(
    "names",
    [
        ["id"],
        ["places.element.lat"],
        ["by_day.key"],
        ["by_place.value.x", "id"],
        ["outer.tags.element.element.y", "outer.name"],
        ["outer"],
        ["by_day"],
    ],
    ids=str,
)
def test_columns_are_selected_alike(names: list[str]) -> None:
    peers = nested()
    own = from_pyiceberg(peers)
    chosen = own.select(*names)
    assert chosen.fields == from_pyiceberg(peers.select(*names)).fields
    ids = {own.find_field(name).field_id for name in names}
    assert prune_columns(own, ids) == chosen


def test_fresh_ids_are_given_in_the_same_order() -> None:
    peers = nested()
    fresh = freshly_numbered(from_pyiceberg(peers))
    assert fresh == from_pyiceberg(assign_fresh_schema_ids(peers))
    later = freshly_numbered(from_pyiceberg(peers), first=100)
    assert min(later.field_ids) == 100


def test_names_that_mean_two_columns_are_refused() -> None:
    inner = ice.StructType(ice.NestedField(2, "b", ice.LongType()))
    with pytest.raises(ValueError, match=r"'a\.b'.*2 and 3|'a\.b'.*3"):
        Schema(ice.NestedField(1, "a", inner), ice.NestedField(3, "a.b", ice.LongType()))


@pytest.mark.parametrize(
    "field_id",
    [20, 1, 5, 6, 30, 11],
    ids=["optional", "list", "key", "value", "in a map", "struct"],
)
def test_what_cannot_identify_rows_is_refused_alike(field_id: int) -> None:
    fields = nested().fields
    with pytest.raises(ValueError):
        PeerSchema(*fields, identifier_field_ids=[field_id])
    with pytest.raises(ValueError, match=f"{field_id}.*cannot identify rows"):
        Schema(*from_pyiceberg(PeerSchema(*fields)).fields, identifier_field_ids=[field_id])


DEFAULTS = [
    (peer.BooleanType(), False),
    (peer.IntegerType(), -5),
    (peer.DoubleType(), 0.5),
    (peer.DateType(), date(2024, 1, 15)),
    (peer.TimeType(), time(1, 2, 3, 4)),
    (peer.TimestampType(), datetime(2024, 1, 15, 10)),
    (peer.TimestamptzType(), datetime(2024, 1, 15, 10, 0, 0, 5, tzinfo=UTC)),
    (peer.StringType(), "é"),
    (peer.UUIDType(), UUID(int=7)),
    (peer.BinaryType(), b"\x00\xff"),
    (peer.FixedType(2), b"\x00\xff"),
    (peer.DecimalType(9, 2), Decimal("1.50")),
]


@pytest.mark.parametrize(("kind", "value"), DEFAULTS, ids=str)
def test_defaults_are_written_and_read_alike(kind: peer.PrimitiveType, value: Any) -> None:
    field = peer.NestedField(1, "a", kind, initial_default=value, write_default=value)
    peers = PeerSchema(field)
    own = from_pyiceberg(peers)
    assert (own.fields[0].initial_default, own.fields[0].write_default) == (value, value)
    assert schema_document(own) == peers.model_dump(mode="json")


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("date", "soon"),
        ("timestamp", "2024-01-01T00:00:00Z"),
        ("timestamptz", "2024-01-01"),
        ("int", "5"),
        ("int", True),
        ("uuid", "x"),
        ("binary", "xyz"),
        ("decimal(9, 2)", "a"),
        ("timestamp_ns", "2024-01-01T00:00:00"),
        ("unknown", 1),
        ("variant", 1),
    ],
)
def test_defaults_of_another_type_are_refused(kind: str, value: Any) -> None:
    field = {"id": 1, "name": "a", "type": kind, "required": False, "write-default": value}
    with pytest.raises(ValueError, match="field 'a': "):
        load_schema({"type": "struct", "fields": [field]})


@pytest.mark.parametrize(
    "document",
    [
        None,
        {},
        {"fields": {}},
        {"fields": [1]},
        {"fields": [{"id": "1", "name": "a", "type": "int"}]},
        {"fields": [{"id": True, "name": "a", "type": "int"}]},
        {"fields": [{"id": 1, "type": "int"}]},
        {"fields": [{"id": 1, "name": "a"}]},
        {"fields": [{"id": 1, "name": "a", "type": {"type": "set"}}]},
        {"fields": [{"id": 1, "name": "a", "type": {"type": "list", "element": "int"}}]},
        {"fields": [{"id": 1, "name": "a", "type": "int", "required": "yes"}]},
        {"fields": [{"id": 1, "name": "a", "type": "int", "doc": 5}]},
        {"fields": [], "schema-id": "0"},
        {"fields": [], "identifier-field-ids": 3},
        {"fields": [], "identifier-field-ids": [3]},
    ],
    ids=str,
)
def test_a_document_that_is_no_schema_is_refused(document: Any) -> None:
    with pytest.raises(ValueError, match=r"expected|is not|Could not find"):
        load_schema(document)


def test_specs_are_written_and_read_alike() -> None:
    peers = PeerSpec(
        PeerField(3, 1000, peer_transform("bucket[16]"), "b"),
        PeerField(12, 1001, peer_transform("zorder"), "strange"),
        spec_id=2,
    )
    own = from_pyiceberg(peers)
    assert str(own.fields[1].transform) == "zorder"  # PyIceberg itself forgets the name
    assert spec_document(own)["fields"][0] == peers.model_dump(mode="json")["fields"][0]
    assert load_spec(spec_document(own)) == own
    again = pyiceberg_spec(own)
    assert again.spec_id == 2
    assert again.fields[0] == peers.fields[0]
    assert str(again.fields[1].transform) == "zorder"
    assert pickle.loads(pickle.dumps(own)) == own


def test_a_field_of_several_columns_goes_to_pyiceberg_and_back() -> None:
    joint = partition_field([3, 12], field_id=1000, transform=JointBucketTransform(4), name="b")
    own = PartitionSpec(joint, spec_id=1)
    assert spec_document(own)["fields"][0]["source-ids"] == [3, 12]
    assert load_spec(spec_document(own)) == own
    theirs = pyiceberg_spec(own)
    assert theirs.fields[0].source_id == 3
    assert str(theirs.fields[0].transform) == "bucket[4]"
    assert from_pyiceberg(theirs) == own


@pytest.mark.parametrize(
    "field",
    [
        1,
        {},
        {"source-id": 1, "field-id": 1000, "name": "a"},
        {"source-id": "1", "field-id": 1000, "name": "a", "transform": "day"},
        {"source-id": 1, "field-id": "x", "name": "a", "transform": "day"},
        {"source-id": 1, "field-id": 1000, "name": 1, "transform": "day"},
        {"source-ids": [], "field-id": 1000, "name": "a", "transform": "day"},
        {"source-ids": [1, 1], "field-id": 1000, "name": "a", "transform": "bucket[2]"},
        {"source-ids": list(range(40)), "field-id": 1000, "name": "a", "transform": "bucket[2]"},
    ],
    ids=str,
)
def test_a_document_that_is_no_spec_is_refused(field: Any) -> None:
    with pytest.raises(ValueError, match=r"expected|source-ids"):
        load_spec({"spec-id": 0, "fields": [field]})


def test_orders_are_written_and_read_alike() -> None:
    peers = PeerOrder(
        PeerSortField(3, peer_transform("identity"), PeerDirection.DESC, PeerNullOrder.NULLS_FIRST),
        PeerSortField(12, peer_transform("truncate[4]")),
        order_id=3,
    )
    own = from_pyiceberg(peers)
    assert str(own) == str(peers)
    assert order_document(own) == peers.model_dump(mode="json")
    assert pyiceberg_order(own) == peers
    assert load_order({"fields": [{"source-id": 1, "direction": "desc"}]}) == load_order(
        {"fields": [{"source-ids": [1], "direction": "desc", "null-order": "nulls-last"}]}
    )
    for bad in ({"source-id": 1, "direction": "up"}, {"source-ids": [1, 2]}, {}, 1):
        with pytest.raises(ValueError, match=r"expected|not a valid"):
            load_order({"fields": [bad]})


def _us() -> UnboundPredicate:
    return UnboundPredicate(Op.EQ, Reference("country"), [literal("US")])


def test_expressions_go_to_pyiceberg_and_back() -> None:
    make: Any = theirs
    expression = make.Or(
        make.And(make.EqualTo("a", 1), make.Not(make.In("b", ["x", "y"])), make.IsNaN("c")),
        make.StartsWith("b", "x"),
        make.LessThanOrEqual("d", date(2024, 1, 15)),
        make.NotNull("e"),
    )
    own = from_pyiceberg(expression)
    assert from_pyiceberg(pyiceberg_expression(own)) == own
    pair = make.And(make.EqualTo("a", 1), make.Not(make.In("b", ["x", "y"])))
    assert pyiceberg_expression(from_pyiceberg(pair)) == pair
    assert from_pyiceberg(make.AlwaysTrue()) == AlwaysTrue()


def test_constants_decide_or_are_left_out() -> None:
    us = _us()
    assert And(us, AlwaysTrue()) == us
    assert And(us, AlwaysFalse()) == AlwaysFalse()
    assert Or(us, AlwaysFalse()) == us
    assert Or(us, AlwaysTrue()) == AlwaysTrue()
    assert And() == AlwaysTrue()
    assert Or() == AlwaysFalse()


def test_a_negation_goes_inwards() -> None:
    us = _us()
    other = UnboundPredicate(Op.IS_NULL, Reference("country"))
    assert ~And(us, other) == Or(~us, ~other)
    assert ~Or(us, other) == And(~us, ~other)
    assert ~~us == us
    assert ~Not(us) == us
    assert (~us, ~other) == (
        UnboundPredicate(Op.NE, Reference("country"), [literal("US")]),
        UnboundPredicate(Op.NOT_NULL, Reference("country")),
    )
    assert us & other == And(us, other)
    assert us | other == Or(us, other)


def test_what_pyiceberg_lets_through_is_refused() -> None:
    spec = PeerSpec(PeerField(3, 1000, PeerBucket(0), "b"))
    with pytest.raises(InvalidInput, match=r"PartitionSpec of PyIceberg: .*buckets is 0"):
        from_pyiceberg(spec)
    with pytest.raises(InvalidInput, match=r"PyIceberg: .*not a type"):
        from_pyiceberg(PeerSchema(peer.NestedField(1, "g", peer.GeometryType("a'b"))))


@pytest.mark.parametrize("levels", [120, 3000])
def test_filters_that_are_nested_too_deep_are_refused(levels: int) -> None:
    make: Any = theirs
    nested_filter = make.EqualTo("id", 0)
    for number in range(levels):
        either = make.And(nested_filter, make.NotEqualTo("id", number))
        nested_filter = make.Or(either, make.EqualTo("id", number))
    with pytest.raises(InvalidInput, match="more than 100 levels"):
        parse(nested_filter, Schema(ice.NestedField(1, "id", ice.LongType())))


def test_only_objects_of_pyiceberg_are_translated() -> None:
    for value in (1, "a", None, ice.LongType(), [peer.LongType()]):
        assert not is_pyiceberg(value)
        assert from_pyiceberg(value) is value
    assert from_pyiceberg(frazil.VariantType()) == ice.VariantType()
    assert pyiceberg_type(ice.VariantType()) == frazil.VariantType()
    field = peer.NestedField(1, "v", peer.ListType(2, frazil.VariantType()))
    assert from_pyiceberg(PeerSchema(field)).find_type(2) == ice.VariantType()
    assert pyiceberg_schema(from_pyiceberg(PeerSchema(field))) == PeerSchema(field)
