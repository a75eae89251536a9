"""What may be stored with a table: text that is text, numbers that fit, no secrets.

Every value that a user gives and a catalog keeps passes here first. A value that was let through
once would come back with every load. Pure: knows types and names, nothing of files.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from frazil.argument_checks import short_repr
from frazil.credentials import is_credential
from frazil.errors import InvalidInput, Unsupported
from frazil.format import paths
from frazil.properties.registry import FOLDERS, SERVE_LOCATION

if TYPE_CHECKING:
    from frazil.iceberg.partitioning import PartitionSpec
    from frazil.iceberg.schema import Schema
    from frazil.iceberg.sorting import SortOrder
    from frazil.iceberg.types import NestedField

CLIENT_FOLDER = "clients"
"""Where clients of a server write, below a table's location."""
PATH_PROPERTIES = tuple(folder.key for folder in FOLDERS)
ADDED_FOLDERS = "frazil.added-files.path"
"""A list in JSON; its name ends as those of folders do, because catalogs look for that."""
_MAX_FOLDERS = 20
_MIN_DEPTH = 3
"""Slashes of a folder that is not shortened: file:///data, s3://bucket/data."""
MAX_INT32 = 2**31 - 1
MAX_INT64 = 2**63 - 1
ENCRYPTION = ("encryption.key-id", "encryption.kms-impl", "encryption.kms-type")
"""Properties of tables whose files are encrypted."""

_SAME_STORE = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfss": "abfs", "wasbs": "wasb"}


def repeated(names: Iterable[str]) -> list[str]:
    """The names that occur more than once, sorted."""
    return sorted(name for name, count in Counter(names).items() if count > 1)


def check_text(value: object, what: str, *, empty: bool = True) -> str:
    """Text that can be written as UTF-8; anything else is refused, with `what` in the message."""
    if not isinstance(value, str):
        raise InvalidInput(f"{what} is {short_repr(value)}; expected text")
    if not value and not empty:
        raise InvalidInput(f"{what} is empty")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidInput(f"{what} is {value!r}, which is not valid Unicode") from None
    if "\0" in value:  # not every database can store it
        raise InvalidInput(f"{what} is {short_repr(value)}; a zero byte is not allowed")
    return value


def check_count(value: object, what: str, *, minimum: int = 1) -> int:
    """A whole number from `minimum` that fits in 64 bits; bool is not accepted."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput(f"{what} is {short_repr(value)}; expected a whole number")
    if not minimum <= value <= MAX_INT64:
        raise InvalidInput(f"{what} is {value}; expected {minimum} to {MAX_INT64}")
    return value


def check_texts(values: object, what: str) -> None:
    """A mapping from names to text."""
    if not isinstance(values, Mapping):
        raise InvalidInput(f"{what} is {short_repr(values)}; expected a mapping of names to text")
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
        if key in ENCRYPTION:
            raise InvalidInput(f"property {key!r} cannot be set; files are not encrypted by Frazil")


def check_not_encrypted(
    name: str, properties: Mapping[str, str], others: Mapping[str, Any]
) -> None:
    """Refuse a table whose files cannot be read without a key. `others` are the fields of its
    metadata that have no meaning here."""
    keys = [key for key in ENCRYPTION if properties.get(key)]
    if others.get("encryption-keys"):
        keys.append("encryption-keys")
    if keys:
        raise Unsupported(
            f"{name}: the table is encrypted ({', '.join(keys)}), and Frazil cannot decrypt its "
            "files; copy the rows to a table without encryption with an engine that has the key",
            feature="encryption",
        )


def own_prefixes(location: str, properties: Mapping[str, str]) -> tuple[str, ...]:
    """How names of files start that lie where a table itself writes: relative to its location."""
    folders = [properties.get(key) for key in PATH_PROPERTIES]
    relative = [paths.relativise(location, folder) for folder in folders if folder]
    return ("data/", f"{CLIENT_FOLDER}/", *(f"{folder.rstrip('/')}/" for folder in relative))


def added_folders(properties: Mapping[str, Any]) -> tuple[str, ...]:
    """Folders of files that a table was given and that lay in no table's folders then."""
    try:
        folders = json.loads(properties.get(ADDED_FOLDERS, "[]"))
    except (TypeError, ValueError):
        return ()
    is_list = isinstance(folders, list) and all(isinstance(folder, str) for folder in folders)
    return tuple(folders) if is_list else ()


def with_added_folders(properties: Mapping[str, str], files: Iterable[str]) -> dict[str, str]:
    """The property to set when a table is given files by their addresses; empty when it has it."""
    noted_folders = added_folders(properties)
    folders = _outermost({*noted_folders, *(file.rpartition("/")[0] for file in files)})
    while len(folders) > _MAX_FOLDERS:
        depth = max(folder.count("/") for folder in folders)
        if depth <= _MIN_DEPTH:
            break
        folders = _outermost(
            folder.rpartition("/")[0] if folder.count("/") == depth else folder
            for folder in folders
        )
    return {} if set(folders) == set(noted_folders) else {ADDED_FOLDERS: json.dumps(folders)}


def _outermost(folders: Iterable[str]) -> list[str]:
    """Folders that lie in no other of them."""
    outermost: list[str] = []
    for folder in sorted({f"{folder.rstrip('/')}/" for folder in folders}):
        if not outermost or not folder.startswith(outermost[-1]):
            outermost.append(folder)
    return [folder.rstrip("/") for folder in outermost]


def client_location(location: str, properties: Mapping[str, str]) -> str:
    """What clients of a server see as a table's location. It holds what they write and nothing
    else: they delete what they find there and do not know of."""
    base = location.rstrip("/")
    location_set = properties.get(SERVE_LOCATION.key)
    if not isinstance(location_set, str) or not location_set.strip("/"):
        return f"{base}/{CLIENT_FOLDER}"
    is_whole = location_set.startswith("/") or paths.is_absolute(location_set)
    return location_set.rstrip("/") if is_whole else f"{base}/{location_set.strip('/')}"


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
    """Names, docs, types and defaults of columns, at every level."""
    for field in schema.fields:
        _check_field(field)


def check_spec(spec: PartitionSpec) -> None:
    """Names of partition fields."""
    for part in spec.fields:
        check_text(part.name, "a partition field's name", empty=False)


def _check_field(field: NestedField) -> None:
    from frazil.format.values.variant_type import has_variant
    from frazil.iceberg.types import MapType

    check_text(field.name, "a column's name", empty=False)
    if field.doc is not None:
        check_text(field.doc, f"the doc of column {field.name!r}")
    kind = field.field_type
    if isinstance(kind, MapType) and has_variant(kind.key_type):
        raise InvalidInput(f"column {field.name!r} is a map with variants as keys")
    _check_type(field)
    for part in kind.inner_fields:
        _check_field(part)
    for default in (field.initial_default, field.write_default):
        if default is not None:
            _check_default(field, default)


def _check_type(field: NestedField) -> None:
    """A type that files can hold."""
    from frazil.iceberg.types import DecimalType, FixedType, UnknownType

    kind = field.field_type
    if isinstance(kind, DecimalType) and not 0 <= kind.scale <= kind.precision:
        wrong = f"; the scale of a decimal is 0 to {kind.precision}"
    elif isinstance(kind, FixedType) and not 1 <= len(kind) <= MAX_INT32:
        wrong = f"; a fixed value has 1 to {MAX_INT32} bytes"
    elif isinstance(kind, UnknownType) and field.required:
        wrong = " and required, but holds nothing but null"
    else:
        return
    raise InvalidInput(f"column {field.name!r} is {kind}{wrong}")


def _check_default(field: NestedField, default: Any) -> None:
    from frazil.format.values.types import plain_value

    try:
        plain_value(default, field.field_type)
    except (InvalidInput, Unsupported) as error:
        raise InvalidInput(f"the default of column {field.name!r}: {error}") from error


def _store(scheme: str | None) -> str:
    return _SAME_STORE.get(scheme or "file", scheme or "file")


def check_fits(spec: PartitionSpec, order: SortOrder, schema: Schema) -> None:
    """Refuse a spec and an order that name columns the schema does not have, or cannot use."""
    spec.check_compatible(schema)
    order.check_compatible(schema)
    _check_no_variants(spec, order, schema)


def _check_no_variants(spec: PartitionSpec, order: SortOrder, schema: Schema) -> None:
    """Variants have no order and no transform."""
    from frazil.format.values.variant_type import variant_ids
    from frazil.iceberg.transforms import VoidTransform

    variants = variant_ids(schema)
    for verb, fields in (("partitioned", spec.fields), ("sorted", order.fields)):
        for part in fields:
            if part.source_id in variants and not isinstance(part.transform, VoidTransform):
                name = schema.find_column_name(part.source_id)
                raise InvalidInput(
                    f"column {name!r} is a variant; a table cannot be {verb} by variants"
                )
    for field_id in schema.identifier_field_ids:
        if field_id in variants:
            name = schema.find_column_name(field_id)
            raise InvalidInput(f"column {name!r} is a variant, which identifies no rows")


def check_partition_names(spec: PartitionSpec, schema: Schema) -> None:
    """Refuse partition fields without a name of their own, and the same one twice."""
    from frazil.iceberg.transforms import IdentityTransform

    names: set[str] = set()
    results: set[tuple[tuple[int, ...], str]] = set()
    for part in spec.fields:
        if not part.name or part.name in names:
            raise InvalidInput(f"partition field name {part.name!r} is empty or used twice")
        result = (part.source_ids, str(part.transform))
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
