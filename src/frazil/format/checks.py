"""What may be stored with a table: text that is text, numbers that fit, no secrets.

Every value that a user gives and a catalog keeps passes here first. A value that was let through
once would come back with every load. Pure: knows types and names, nothing of files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from frazil.entrance import shown
from frazil.errors import InvalidInput
from frazil.format import paths

if TYPE_CHECKING:
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table.sorting import SortOrder
    from pyiceberg.types import NestedField

METADATA_PATH = "write.metadata.path"
DATA_PATHS = ("write.data.path", "write.folder-storage.path", "write.object-storage.path")
PATH_PROPERTIES = (METADATA_PATH, *DATA_PATHS)
MOST = 2**63 - 1

_SECRET_WORDS = frozenset(
    {"secret", "password", "passwd", "token", "credential", "credentials", "sas"}
)
_SECRET_PAIRS = re.compile(r"(access|account|private|api|shared)[-_.]?key|connection[-_.]?string")
_SAME_STORE = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfss": "abfs", "wasbs": "wasb"}


def is_credential(key: str) -> bool:
    """Whether a property of this name holds a secret, by Iceberg's and the clouds' naming."""
    lowered = key.lower()
    words = re.split(r"[.\-_]", lowered)
    return bool(_SECRET_WORDS.intersection(words) or _SECRET_PAIRS.search(lowered))


def check_text(value: object, what: str, *, empty: bool = True) -> str:
    """Text that can be written as UTF-8; anything else is refused, with `what` in the message."""
    if not isinstance(value, str):
        raise InvalidInput(f"{what} is {shown(value)}; expected text")
    if not value and not empty:
        raise InvalidInput(f"{what} is empty")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidInput(f"{what} is {value!r}, which is not valid Unicode") from None
    if "\0" in value:  # not every database can store it
        raise InvalidInput(f"{what} is {shown(value)}; a zero byte is not allowed")
    return value


def check_count(value: object, what: str, *, least: int = 1) -> int:
    """A whole number from `least` that fits in 64 bits; true and false are not numbers here."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput(f"{what} is {shown(value)}; expected a whole number")
    if not least <= value <= MOST:
        raise InvalidInput(f"{what} is {value}; expected {least} to {MOST}")
    return value


def check_texts(values: object, what: str) -> None:
    """A mapping from names to text."""
    if not isinstance(values, Mapping):
        raise InvalidInput(f"{what} is {shown(values)}; expected a mapping of names to text")
    for key, value in values.items():
        name = check_text(key, f"a name in {what}", empty=False)
        if is_credential(name) and not isinstance(value, str):
            raise InvalidInput(f"{what} {name!r} is not text")  # its value is not shown
        check_text(value, f"{what} {name!r}")


def check_summary(summary: Mapping[str, str] | None) -> None:
    """What a user adds to a snapshot's summary."""
    if summary is not None:
        check_texts(summary, "summary")


def check_properties(properties: Mapping[str, str]) -> None:
    """Refuse properties that cannot be stored: credentials, and what is not text."""
    check_texts(properties, "property")
    for key in properties:
        if is_credential(key):
            raise InvalidInput(
                f"property {key!r} looks like a credential and would be stored with the table; "
                "give it to the catalog connection instead"
            )
        if key == "format-version":
            raise InvalidInput("property 'format-version' cannot be set; tables are version 4")


def check_path_properties(location: str, properties: Mapping[str, str]) -> None:
    """Refuse folders that the table's storage cannot reach or that lead out of where they say."""
    for key in PATH_PROPERTIES:
        value = properties.get(key)
        if value is None:
            continue
        if not value.strip("/") or value != value.strip() or ".." in value.split("/"):
            raise InvalidInput(f"property {key} is {value!r}; expected a folder without '..'")
        scheme = paths.scheme(value)
        if scheme is None:
            continue
        if _store(scheme) != _store(paths.scheme(location)):
            raise InvalidInput(
                f"property {key} is {value!r}; expected a folder in the same storage as the "
                f"table, {location}"
            )
        rest = value[len(scheme) + 1 :]
        if not rest.strip("/") or not rest.startswith("/"):
            raise InvalidInput(f"property {key} is {value!r}; expected a folder")


def check_ref_name(name: object) -> None:
    """The name of a branch or tag."""
    text = check_text(name, "the name of a branch or tag", empty=False)
    if text != text.strip() or not text.isprintable():
        raise InvalidInput(f"{text!r} is not a name for a branch or tag")


def check_schema(schema: Schema) -> None:
    """Names and docs of columns, at every level."""
    for field in schema.fields:
        _check_field(field)


def check_spec(spec: PartitionSpec) -> None:
    """Names of partition fields."""
    for part in spec.fields:
        check_text(part.name, "a partition field's name", empty=False)


def _check_field(field: NestedField) -> None:
    from pyiceberg.types import ListType, MapType, StructType

    check_text(field.name, "a column's name", empty=False)
    if field.doc is not None:
        check_text(field.doc, f"the doc of column {field.name!r}")
    rest: list[Any] = [field.field_type]
    while rest:
        kind = rest.pop()
        if isinstance(kind, StructType):
            for inner in kind.fields:
                _check_field(inner)
        elif isinstance(kind, ListType):
            rest.append(kind.element_type)
        elif isinstance(kind, MapType):
            rest += [kind.key_type, kind.value_type]


def _store(scheme: str | None) -> str:
    return _SAME_STORE.get(scheme or "file", scheme or "file")


def check_fits(spec: PartitionSpec, order: SortOrder, schema: Schema) -> None:
    """Refuse a spec and an order that name columns the schema does not have, or cannot use."""
    from pyiceberg.exceptions import ValidationError

    try:
        spec.check_compatible(schema)
        order.check_compatible(schema)
    except (ValueError, ValidationError) as error:
        raise InvalidInput(str(error)) from error


def check_partition_names(spec: PartitionSpec, schema: Schema) -> None:
    """Refuse partition fields without a name of their own, and the same one twice."""
    from pyiceberg.transforms import IdentityTransform

    names: set[str] = set()
    results: set[tuple[int, str]] = set()
    for part in spec.fields:
        if not part.name or part.name in names:
            raise InvalidInput(f"partition field name {part.name!r} is empty or used twice")
        result = (part.source_id, str(part.transform))
        if result in results:
            raise InvalidInput(
                f"partition field {part.name!r} repeats {part.transform} of a column"
            )
        names.add(part.name)
        results.add(result)
        column = next((f for f in schema.fields if f.name == part.name), None)
        same = isinstance(part.transform, IdentityTransform) and (
            column is not None and column.field_id == part.source_id
        )
        if column is not None and not same:
            raise InvalidInput(f"partition field {part.name!r} has the name of a column")
