"""Options of reads and writes of catalog tables, by Iceberg's names; others are refused.

`spark.read.option("snapshot-id", 42).table(…)`, `df.writeTo(…).option("branch", "audit")`, and
`… WITH (branch = 'audit')` in SQL.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Final

from frazil.commit.change import Isolation
from frazil.errors import InvalidInput
from frazil.text_format import did_you_mean
from frazil.value_classes import field, frozen

SNAPSHOT, AS_OF, TAG, BRANCH = "snapshot-id", "as-of-timestamp", "tag", "branch"
START, END, SPLIT = "start-snapshot-id", "end-snapshot-id", "split-size"
_READ: Final = (SNAPSHOT, AS_OF, TAG, BRANCH, START, END, SPLIT)
_FILES: Final = {
    "target-file-size-bytes": "write.target-file-size-bytes",
    "compression-codec": "write.parquet.compression-codec",
    "compression-level": "write.parquet.compression-level",
    "distribution-mode": "write.distribution-mode",
}
"""Options that stand for properties of the table, for one write."""
_SUMMARY: Final = "snapshot-property."
_WRITE: Final = (
    BRANCH,
    "overwrite-mode",
    "isolation-level",
    "validate-from-snapshot-id",
    "write-format",
    "mergeSchema",
    _SUMMARY + "*",
    *_FILES,
)
_SPARKS_OWN: Final = frozenset({"versionasof", "timestampasof"})
"""Spark acts on these itself and passes them on."""
_INSTEAD: Final = {
    "readchangefeed": "the table <name>.changes has the changes",
    "startingversion": "the table <name>.changes has the changes",
    "endingversion": "the table <name>.changes has the changes",
    "replacewhere": "df.writeTo(…).overwrite(condition) and INSERT INTO … REPLACE WHERE replace "
    "the rows that match",
    "path": "a table of a catalog is named, not located",
}
"""Options of other formats, and what there is in their place."""


@frozen
class ReadOptions:
    """Which state of a table to read. `appended` are the ids between which appends are read."""

    snapshot: int | None = None
    as_of: datetime | None = None
    tag: str | None = None
    branch: str | None = None
    appended: tuple[int, int | None] | None = None
    split_bytes: int | None = None

    @staticmethod
    def parse(options: Mapping[str, str]) -> ReadOptions:
        """Options by their names, in any case."""
        values = _checked_options(options, _READ, "read")
        states = [key for key in (SNAPSHOT, AS_OF, TAG, BRANCH, START) if key in values]
        if len(states) > 1:
            raise InvalidInput(f"options {' and '.join(states)} exclude each other")
        if END in values and START not in values:
            raise InvalidInput(f"option {END} needs {START}")
        start = _number(values, START)
        millis = _number(values, AS_OF)
        return ReadOptions(
            snapshot=_number(values, SNAPSHOT),
            as_of=None if millis is None else datetime.fromtimestamp(millis / 1000, UTC),
            tag=values.get(TAG),
            branch=values.get(BRANCH),
            appended=None if start is None else (start, _number(values, END)),
            split_bytes=_number(values, SPLIT),
        )


@frozen
class WriteOptions:
    """How to write: `properties` are those of the table for this write alone."""

    branch: str | None = None
    is_dynamic: bool | None = None
    isolation: Isolation | None = None
    validate_from: int | None = None
    merge_schema: bool = False
    summary: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def parse(options: Mapping[str, str]) -> WriteOptions:
        """Options by their names, in any case."""
        settings = {key: value for key, value in options.items() if not _is_summary(key)}
        values = _checked_options(
            settings, (*_WRITE, "merge-schema", "partitionOverwriteMode"), "write"
        )
        kind = values.get("write-format", "parquet")
        if kind.lower() != "parquet":
            raise InvalidInput(f"option write-format is {kind!r}; data files are parquet")
        level = values.get("isolation-level")
        return WriteOptions(
            branch=values.get(BRANCH),
            is_dynamic=_is_dynamic(values),
            isolation=None if level is None else Isolation.parse(level),
            validate_from=_number(values, "validate-from-snapshot-id"),
            merge_schema=_flag(values, "mergeschema") or _flag(values, "merge-schema"),
            summary={
                key[len(_SUMMARY) :]: value for key, value in options.items() if _is_summary(key)
            },
            properties={_FILES[key]: value for key, value in values.items() if key in _FILES},
        )

    @staticmethod
    def whole_table(options: Mapping[str, str]) -> WriteOptions:
        """Those of a query that makes or replaces a table; what is about a part of it is refused.

        A path is the table's, and its schema is replaced as well.
        """
        settings = {
            key: value
            for key, value in options.items()
            if key.lower() != "path" and (key.lower(), value.lower()) != ("overwriteschema", "true")
        }
        parsed = WriteOptions.parse(settings)
        for option, is_there in (
            (BRANCH, parsed.branch is not None),
            ("overwrite-mode", bool(parsed.is_dynamic)),
            ("validate-from-snapshot-id", parsed.validate_from is not None),
        ):
            if is_there:
                raise InvalidInput(
                    f"option {option} has no meaning where a table is made or replaced as a whole; "
                    "df.writeTo(…) and insertInto append to and overwrite one that is there"
                )
        return parsed


def _is_summary(key: str) -> bool:
    return key.lower().startswith(_SUMMARY) and len(key) > len(_SUMMARY)


def _checked_options(
    options: Mapping[str, str], names: Collection[str], verb: str
) -> dict[str, str]:
    """Options by lower-case names; refuses those that mean nothing here."""
    lower = {name.lower() for name in names}
    lowered = {key.lower(): value for key, value in options.items()}
    for key in sorted(lowered):
        if key in lower or key in _SPARKS_OWN:
            continue
        spelled = next(name for name in options if name.lower() == key)
        hint = f": {_INSTEAD[key]}" if key in _INSTEAD else did_you_mean(key, names)
        listed = "" if key in _INSTEAD else f"; to {verb} there are {', '.join(sorted(names))}"
        raise InvalidInput(f"option {spelled} is not an option of Frazil tables{hint or listed}")
    return lowered


def _is_dynamic(values: Mapping[str, str]) -> bool | None:
    """Whether an overwrite replaces only the partitions that it has rows for, if it says so."""
    for key in ("overwrite-mode", "partitionoverwritemode"):
        if key in values:
            mode = values[key].lower()
            if mode not in ("dynamic", "static"):
                raise InvalidInput(f"option {key} is {values[key]!r}; expected dynamic or static")
            return mode == "dynamic"
    return None


def _number(values: Mapping[str, str], key: str) -> int | None:
    text = values.get(key)
    if text is None:
        return None
    if not text.strip().isdigit():
        raise InvalidInput(f"option {key} is {text!r}; expected a number")
    return int(text)


def _flag(values: Mapping[str, str], key: str) -> bool:
    text = values.get(key, "false").lower()
    if text not in ("true", "false"):
        raise InvalidInput(f"option {key} is {values[key]!r}; expected true or false")
    return text == "true"
