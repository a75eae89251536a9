"""PyIceberg's objects as ours and back, where users hand them in and get them.

PyIceberg is imported when somebody asks for its objects, and never to find out that a value is
none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from frazil.errors import InvalidInput, Unsupported
from frazil.iceberg import expressions as ours
from frazil.iceberg import literals
from frazil.iceberg.expressions import Op
from frazil.iceberg.type_json import type_document, type_of_document
from frazil.iceberg.types import VARIANT, NestedField

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table.sorting import SortOrder
    from pyiceberg.types import IcebergType

    from frazil.iceberg import partitioning, schema, sorting, types


AnySchema: TypeAlias = "schema.Schema | Schema"
AnySpec: TypeAlias = "partitioning.PartitionSpec | PartitionSpec"
AnyOrder: TypeAlias = "sorting.SortOrder | SortOrder"
AnyType: TypeAlias = "types.IcebergType | IcebergType"
AnyExpression: TypeAlias = "ours.BooleanExpression | BooleanExpression"


def is_pyiceberg(value: object) -> bool:
    """Whether an object is of a class of PyIceberg, or of one that extends it."""
    return any(cls.__module__.startswith("pyiceberg.") for cls in type(value).__mro__)


# --- from PyIceberg ------------------------------------------------------------------------------


def from_pyiceberg(value: Any) -> Any:
    """An object of PyIceberg as the object of ours that says the same; anything else as it is."""
    if not is_pyiceberg(value):
        return value
    try:
        return _translated(value)
    except ValueError as error:
        raise InvalidInput(f"the {type(value).__name__} of PyIceberg: {error}") from error
    except RecursionError:
        raise InvalidInput(ours.TOO_DEEP) from None


def _translated(value: Any) -> Any:
    from pyiceberg import expressions as theirs
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table.sorting import SortOrder
    from pyiceberg.transforms import Transform
    from pyiceberg.types import IcebergType

    match value:
        case Schema():
            from frazil.iceberg.schema import load_schema

            return load_schema(value.model_dump(mode="json"))
        case PartitionSpec():
            return _spec(value)
        case SortOrder():
            from frazil.iceberg.sorting import load_order

            return load_order(value.model_dump(mode="json"))
        case IcebergType():
            return type_of_document(value.model_dump(mode="json"))
        case Transform():
            from frazil.iceberg.transforms import parse_transform

            return parse_transform(_transform_text(value))
        case theirs.BooleanExpression():
            return _expression(value)
    return value


def _transform_text(transform: Any) -> str:
    """A transform as it is written. Of one that it does not know, PyIceberg's text is `unknown`."""
    from pyiceberg.transforms import UnknownTransform

    return str(transform._transform if isinstance(transform, UnknownTransform) else transform)


def _spec(spec: PartitionSpec) -> partitioning.PartitionSpec:
    from frazil.iceberg import partitioning
    from frazil.iceberg.transforms import parse_transform

    fields = []
    for part in spec.fields:
        sources = getattr(part, "source_ids", (part.source_id,))
        transform = parse_transform(_transform_text(part.transform), sources=len(sources))
        fields.append(
            partitioning.partition_field(
                sources, field_id=part.field_id, transform=transform, name=part.name
            )
        )
    return partitioning.PartitionSpec(*fields, spec_id=spec.spec_id)


def _expression(expression: BooleanExpression) -> ours.BooleanExpression:
    from pyiceberg import expressions as theirs

    match expression:
        case theirs.AlwaysTrue():
            return ours.AlwaysTrue()
        case theirs.AlwaysFalse():
            return ours.AlwaysFalse()
        case theirs.Not():
            return ours.Not(_expression(expression.child))
        case theirs.And() | theirs.Or():
            kind: type[Any] = theirs.And if isinstance(expression, theirs.And) else theirs.Or
            operands = map(_expression, ours.operands_of(expression, kind))
            return ours.And(*operands) if kind is theirs.And else ours.Or(*operands)
    name = type(expression).__name__
    op = _OPS.get(name.removeprefix("Bound"))
    if op is None:
        raise Unsupported(f"a filter cannot contain {name}", feature="filter expression")
    term: Any = getattr(expression, "term", None)
    values = _values(expression)
    if isinstance(term, theirs.BoundReference):
        field = _field(term.field)
        return ours.BoundPredicate(op, ours.Column(field, (field.name,)), values)
    return ours.UnboundPredicate(op, ours.Reference(term.name), values)


def _field(field: Any) -> NestedField:
    return NestedField(
        field.field_id, field.name, from_pyiceberg(field.field_type), field.required, field.doc
    )


def _values(predicate: Any) -> tuple[literals.Literal, ...]:
    if hasattr(predicate, "literal"):
        return (_literal(predicate.literal),)
    stated = getattr(predicate, "literals", ())
    return tuple(map(_literal, stated))


def _literal(literal: Any) -> literals.Literal:
    name = type(literal).__name__
    for end in ("AboveMax", "BelowMin"):  # `IntAboveMax` and others
        name = end if name.endswith(end) else name
    kind = getattr(literals, name, None)
    if kind is None:
        raise Unsupported(f"a filter cannot compare with {literal!r}", feature="filter expression")
    translated: literals.Literal = kind(literal.value)
    return translated


# --- to PyIceberg --------------------------------------------------------------------------------


def pyiceberg_schema(schema: schema.Schema) -> Schema:
    """A schema as PyIceberg's."""
    return _schema(schema, schema.schema_id)


@lru_cache(maxsize=256)
def _schema(schema: schema.Schema, schema_id: int) -> Schema:
    """The id is an argument because equal schemas may differ in it."""
    from pyiceberg.schema import Schema

    from frazil.iceberg.schema import schema_document

    return Schema.model_validate(_with_variants(schema_document(schema)))


def pyiceberg_type(kind: types.IcebergType) -> IcebergType:
    """A type as PyIceberg's."""
    from pyiceberg.schema import Schema

    field = {"id": 1, "name": "value", "required": False, "type": type_document(kind)}
    document = _with_variants({"type": "struct", "fields": [field]})
    return Schema.model_validate(document).fields[0].field_type


def pyiceberg_spec(spec: partitioning.PartitionSpec) -> PartitionSpec:
    """A partition spec as PyIceberg's."""
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.transforms import parse_transform

    from frazil.iceberg.pyiceberg_classes import JointField, KeptTransform
    from frazil.iceberg.transforms import UnknownTransform

    fields: list[PartitionField] = []
    for part in spec.fields:
        text = str(part.transform)
        is_unknown = part.is_joint or isinstance(part.transform, UnknownTransform)
        transform = KeptTransform(text) if is_unknown else parse_transform(text)
        if part.is_joint:
            fields.append(JointField(part.source_ids, part.field_id, transform, part.name))
        else:
            fields.append(PartitionField(part.source_id, part.field_id, transform, part.name))
    return PartitionSpec(*fields, spec_id=spec.spec_id)


def pyiceberg_order(order: sorting.SortOrder) -> SortOrder:
    """A sort order as PyIceberg's."""
    from pyiceberg.table.sorting import SortOrder

    from frazil.iceberg.sorting import order_document

    return SortOrder.model_validate(order_document(order))


def pyiceberg_expression(expression: ours.BooleanExpression) -> BooleanExpression:
    """A filter as PyIceberg's, with columns by name."""
    from pyiceberg import expressions as theirs

    match expression:
        case ours.AlwaysTrue():
            return theirs.AlwaysTrue()
        case ours.AlwaysFalse():
            return theirs.AlwaysFalse()
        case ours.Not():
            return theirs.Not(pyiceberg_expression(expression.child))
        case ours.And() | ours.Or():
            joined = theirs.And if isinstance(expression, ours.And) else theirs.Or
            left, right = expression.left, expression.right
            return joined(pyiceberg_expression(left), pyiceberg_expression(right))
        case ours.UnboundPredicate() | ours.BoundPredicate() if expression.op is not None:
            return _predicate(expression, expression.op)
    raise Unsupported(
        f"PyIceberg has no expression for {expression!r}", feature="filter expression in PyIceberg"
    )


def _predicate(predicate: ours.UnboundPredicate | ours.BoundPredicate, op: Op) -> BooleanExpression:
    from pyiceberg import expressions as theirs
    from pyiceberg.expressions import literals as their_literals

    cls = getattr(theirs, _NAMES[op])
    term = theirs.Reference(predicate.term.name)
    values = [
        getattr(their_literals, type(value).__name__)(value.value) for value in predicate.literals
    ]
    if op in ours.UNARY:
        made = cls(term)
    elif op in ours.SETS:
        made = cls(term, set(values))
    else:
        made = cls(term, values[0])
    assert isinstance(made, theirs.BooleanExpression)
    return made


def _with_variants(document: Any) -> Any:
    """JSON with the name of the type replaced by the type, which PyIceberg does not know by name;
    the document itself when it has none."""
    if isinstance(document, Mapping):
        return {
            key: _variant()
            if value == VARIANT and key in _TYPES
            else _with_variants(value)
            if key in _NESTING
            else value
            for key, value in document.items()
        }
    if isinstance(document, list):
        return [_with_variants(item) for item in document]
    return document


def _variant() -> Any:
    from frazil.iceberg.pyiceberg_classes import VariantType

    return VariantType()


_TYPES: Final = frozenset({"type", "element", "key", "value"})
_NESTING: Final = _TYPES | {"fields"}
_NAMES: Final = {
    Op.IS_NULL: "IsNull",
    Op.NOT_NULL: "NotNull",
    Op.IS_NAN: "IsNaN",
    Op.NOT_NAN: "NotNaN",
    Op.LT: "LessThan",
    Op.LE: "LessThanOrEqual",
    Op.GT: "GreaterThan",
    Op.GE: "GreaterThanOrEqual",
    Op.EQ: "EqualTo",
    Op.NE: "NotEqualTo",
    Op.STARTS_WITH: "StartsWith",
    Op.NOT_STARTS_WITH: "NotStartsWith",
    Op.IN: "In",
    Op.NOT_IN: "NotIn",
}
"""PyIceberg's classes; those of bound predicates begin with `Bound`."""
_OPS: Final = {name: op for op, name in _NAMES.items()}
