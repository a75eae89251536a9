"""A Paimon table's schema files: columns, keys and options of each schema version.

Parses `schema/schema-<id>` JSON and answers what follows from it: which columns a stats row covers,
whether the table has a primary key, what an absent option means. Reads no files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from frazil.errors import FormatError, InvalidInput
from frazil.paimon.read.data_types import DataField, DataType, TypeName, parse_field
from frazil.value_classes import frozen

_ROW_ID: Final = DataField(
    id=2147483642, name="_ROW_ID", type=DataType(name=TypeName.BIGINT, nullable=True)
)
_SEQUENCE_NUMBER: Final = DataField(
    id=2147483646, name="_SEQUENCE_NUMBER", type=DataType(name=TypeName.BIGINT, nullable=True)
)
SYSTEM_FIELDS: Final[Mapping[str, DataField]] = {
    _ROW_ID.name: _ROW_ID,
    _SEQUENCE_NUMBER.name: _SEQUENCE_NUMBER,
}
"""System columns that data files may store and stats rows may cover."""

_TRUE: Final = "true"
_ORC_BY_DEFAULT: Final = 2
"""The last schema version whose tables wrote ORC unless told otherwise."""

KIND: Final = "_VALUE_KIND"
"""The column of a primary-key file that says what a row does."""
INSERT_KINDS: Final = (0, 2)
"""Row kinds +I and +U; the others, -U and -D, take rows away."""


class MergeEngine(StrEnum):
    """How rows with the same primary key become one."""

    DEDUPLICATE = "deduplicate"
    PARTIAL_UPDATE = "partial-update"
    AGGREGATE = "aggregation"
    FIRST_ROW = "first-row"


@frozen
class TableSchema:
    """One version of a table's schema."""

    id: int
    version: int
    fields: tuple[DataField, ...]
    highest_field_id: int
    partition_keys: tuple[str, ...]
    primary_keys: tuple[str, ...]
    options: Mapping[str, str]
    comment: str | None
    time_ms: int

    def field(self, name: str) -> DataField:
        """The column with this name, or a system column."""
        for field in self.fields:
            if field.name == name:
                return field
        if name in SYSTEM_FIELDS:
            return SYSTEM_FIELDS[name]
        raise FormatError(f"schema {self.id} has no column {name!r}", field="fields")

    def select(self, names: Sequence[str]) -> tuple[DataField, ...]:
        """The columns of those names, in that order."""
        return tuple(self.field(name) for name in names)

    @property
    def partition_fields(self) -> tuple[DataField, ...]:
        """The partition columns, in partition key order."""
        return self.select(self.partition_keys)

    @property
    def trimmed_primary_keys(self) -> tuple[str, ...]:
        """The primary key without partition keys: the fields of `_MIN_KEY` and `_KEY_STATS`."""
        return tuple(key for key in self.primary_keys if key not in self.partition_keys)

    def is_enabled(self, option: str) -> bool:
        """Whether a boolean option is set to true; every one asked for here defaults to false."""
        return self.options.get(option, "").lower() == _TRUE

    @property
    def has_primary_key(self) -> bool:
        """Whether rows are keyed; otherwise the table is append-only."""
        return bool(self.primary_keys)

    @property
    def merge_engine(self) -> MergeEngine:
        """The table's merge engine."""
        text = self.options.get("merge-engine", MergeEngine.DEDUPLICATE.value)
        try:
            return MergeEngine(text)
        except ValueError:
            raise InvalidInput(
                f"merge-engine is {text!r}; expected one of {', '.join(MergeEngine)}"
            ) from None

    @property
    def deletion_vectors_enabled(self) -> bool:
        """Whether the table keeps deletion vectors."""
        return self.is_enabled("deletion-vectors.enabled")

    @property
    def bucket(self) -> int:
        """Buckets per partition: -1 dynamic or unaware, -2 postponed."""
        return _whole(self.options.get("bucket", "1" if self.version == 1 else "-1"), "bucket")

    @property
    def file_format(self) -> str:
        """The format of new data files."""
        default = "orc" if self.version <= _ORC_BY_DEFAULT else "parquet"
        return self.options.get("file.format", default).lower()

    @property
    def legacy_partition_names(self) -> bool:
        """Whether partition directories are named by the value's internal form."""
        return self.options.get("partition.legacy-name", _TRUE).lower() == _TRUE

    @property
    def default_partition_name(self) -> str:
        """The directory name of null, empty and blank partition values."""
        return self.options.get("partition.default-name", "__DEFAULT_PARTITION__")

    @property
    def data_directory(self) -> str | None:
        """The directory under the table that holds the data, when it is not the table's own."""
        return self.options.get("data-file.path-directory")


def parse_schema(data: bytes) -> TableSchema:
    """A schema version from its JSON file."""
    raw = parse_object(data)
    fields = raw.get("fields")
    if not isinstance(fields, list) or not fields:
        raise FormatError("a schema without fields", field="fields")
    parsed = tuple(parse_field(field) for field in fields)
    names = [field.name for field in parsed]
    if len(set(names)) != len(names):
        raise FormatError("two columns have the same name", field="fields")
    keys = {name: _names(raw, name) for name in ("partitionKeys", "primaryKeys")}
    for name, listed in keys.items():
        for key in listed:
            if key not in names:
                raise FormatError(f"{key!r} is not a column", field=name)
    options = raw.get("options") or {}
    if not isinstance(options, dict):
        raise FormatError(f"{options!r} are not options", field="options")
    comment = raw.get("comment")
    return TableSchema(
        id=whole(raw, "id"),
        version=whole(raw, "version", default=1),
        fields=parsed,
        highest_field_id=whole(raw, "highestFieldId", default=max(field.id for field in parsed)),
        partition_keys=keys["partitionKeys"],
        primary_keys=keys["primaryKeys"],
        options={str(key): str(value) for key, value in options.items()},
        comment=comment if isinstance(comment, str) else None,
        time_ms=whole(raw, "timeMillis", default=0),
    )


def parse_object(data: bytes) -> dict[str, Any]:
    """A JSON object, or a `FormatError`."""
    try:
        raw = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"not JSON: {error}") from None
    if not isinstance(raw, dict):
        raise FormatError(f"holds {type(raw).__name__}; expected a JSON object")
    return raw


def whole(raw: Mapping[str, Any], name: str, *, default: int | None = None) -> int:
    """An integer property of a JSON object."""
    value = raw.get(name)
    if value is None and default is not None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 2**63:
        raise FormatError(f"is {value!r}; expected a whole number", field=name)
    return value


def _whole(text: str, name: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise FormatError(f"is {text!r}; expected a whole number", field=name) from None


def _names(raw: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = raw.get(name) or []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise FormatError(f"is {value!r}; expected a list of names", field=name)
    return tuple(value)
