"""Objects of PyIceberg in table metadata, from JSON: schemas, specs, sort orders, transforms.

Ids are read, and what surrounds the objects is checked, without PyIceberg; the objects themselves
can be left until they are first used, because importing their classes takes longer than opening a
table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from frazil.errors import FormatError, Unsupported
from frazil.format.json_fields import Fields
from frazil.format.later import Later
from frazil.format.metadata import DerivedColumn, FieldId

if TYPE_CHECKING:
    from pyiceberg.typedef import IcebergBaseModel

_IDS = {"schemas": "schema-id", "partition-specs": "spec-id", "sort-orders": "order-id"}


def models(raw: Fields, key: str, ids: dict[str, list[int]], *, later: bool) -> Sequence[Any]:
    """PyIceberg's objects; their ids are noted without making them."""
    items = raw.each(key)
    if not items:
        raise raw.bad(key, "is missing or empty")
    found = ids[key] = []
    for item in items:
        # PyIceberg's models take defaults for these, which would make another table of it.
        found.append(item.need(_IDS[key], int))
        item.values[_IDS[key]] = found[-1]
        item.values["fields"] = item.need("fields", list)
    return _made([partial(_model, item, key) for item in items], later=later)


def _made(makers: Sequence[Callable[[], Any]], *, later: bool) -> Sequence[Any]:
    return Later(makers) if later else tuple(make() for make in makers)


def _model_of(key: str) -> type[IcebergBaseModel]:
    """The class of a list's items; sort orders come with all of PyIceberg's table layer."""
    if key == "schemas":
        from pyiceberg.schema import Schema

        return Schema
    if key == "partition-specs":
        from pyiceberg.partitioning import PartitionSpec

        return PartitionSpec
    from pyiceberg.table.sorting import SortOrder

    return SortOrder


def _model(item: Fields, key: str) -> IcebergBaseModel:
    model = _model_of(key)
    try:
        return model.model_validate(item.values)
    except Exception as error:  # PyIceberg's validators let several kinds through
        if _has_variant(item.values):
            raise Unsupported(
                f"{item.path}: {item.at}: columns of type variant cannot be read",
                feature="variant",
            ) from error
        reason = str(error).splitlines()
        problem = f"is not a valid {model.__name__}: {' '.join(reason[:3])}"
        raise FormatError(problem, path=item.path, field=item.at) from error


def column_ids(schemas: Any) -> set[int]:
    """The ids of all columns in the JSON of schemas, nested ones included."""
    found: set[int] = set()
    rest: list[Any] = [schemas]
    while rest:
        value = rest.pop()
        if isinstance(value, dict):
            ids = (value.get(key) for key in ("id", "element-id", "key-id", "value-id"))
            found.update(each for each in ids if type(each) is int)
            rest.extend(value.get(key) for key in ("fields", "type", "element", "key", "value"))
        elif isinstance(value, list):
            rest.extend(value)
    return found


def _has_variant(schema: dict[str, Any]) -> bool:
    rest: list[Any] = [schema]
    while rest:
        value = rest.pop()
        if isinstance(value, dict):
            if "variant" in (value.get("type"), value.get("element"), value.get("value")):
                return True
            rest.extend(value.values())
        elif isinstance(value, list):
            rest.extend(value)
    return False


def derived_columns(
    raw: Fields, ids: dict[str, list[int]], *, later: bool
) -> Sequence[DerivedColumn]:
    found = ids["expressions"] = []
    makers = []
    for each in raw.each("expressions"):
        expr_id, make = _derived(each)
        found.append(expr_id)
        makers.append(make)
    return _made(makers, later=later)


def _derived(raw: Fields) -> tuple[int, Callable[[], DerivedColumn]]:
    """The id of a derived column, and what makes it."""
    expr_id = raw.need("expr-id", int)
    partition_field_id = raw.need("partition-field-id", int)
    expr = raw.inner("expr")
    sources = expr.need("source-ids", list)
    if not sources or not all(type(source) is int for source in sources):
        raise expr.bad("source-ids", "must list field ids")
    text = expr.need("transform", str)
    name = expr.need("name", str)
    extra = {**raw.values, "expr": expr.values} if expr.values else raw.values

    def make() -> DerivedColumn:
        from pyiceberg.transforms import parse_transform

        try:
            transform = parse_transform(text)
        except Exception as error:  # PyIceberg's validators let several kinds through
            raise expr.bad("transform", f"is {text!r}: {error}") from error
        return DerivedColumn(
            expr_id=FieldId(expr_id),
            source_ids=tuple(sources),
            transform=transform,
            name=name,
            partition_field_id=partition_field_id,
            extra=extra,
        )

    return expr_id, make


__all__ = ["column_ids", "derived_columns", "models"]
