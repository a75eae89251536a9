"""Paimon snapshots and tags: what a snapshot's JSON file says.

The state of a snapshot is its base manifest list plus its delta manifest list; the index manifest
is the whole current set, not a change. A tag is a snapshot with a name. Reads no files.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from frazil.errors import FormatError
from frazil.paimon.read.table_schema import parse_object, whole
from frazil.value_classes import frozen

KINDS: Final = ("APPEND", "COMPACT", "OVERWRITE", "ANALYZE")


@frozen
class PaimonSnapshot:
    """One committed version of a Paimon table."""

    id: int
    schema_id: int
    base_manifest_list: str | None
    delta_manifest_list: str | None
    changelog_manifest_list: str | None
    index_manifest: str | None
    commit_user: str
    commit_identifier: int
    commit_kind: str
    time_ms: int
    total_record_count: int | None
    delta_record_count: int | None
    changelog_record_count: int | None
    watermark: int | None
    statistics: str | None
    next_row_id: int | None
    writer_version: str | None
    properties: Mapping[str, str]

    @property
    def manifest_lists(self) -> tuple[str, ...]:
        """The lists that together are the table's state, in order."""
        lists = (self.base_manifest_list, self.delta_manifest_list)
        return tuple(name for name in lists if name)


@frozen
class Tag:
    """A named snapshot that expiry leaves alone."""

    name: str
    snapshot: PaimonSnapshot
    create_time_ms: int | None
    time_retained_ms: int | None


def parse_snapshot(data: bytes) -> PaimonSnapshot:
    """A snapshot from its JSON file."""
    return _snapshot(parse_object(data))


def parse_tag(name: str, data: bytes) -> Tag:
    """A tag from its JSON file."""
    raw = parse_object(data)
    return Tag(
        name=name,
        snapshot=_snapshot(raw),
        create_time_ms=_local_time_ms(raw.get("tagCreateTime")),
        time_retained_ms=_seconds(raw.get("tagTimeRetained")),
    )


def _snapshot(raw: Mapping[str, Any]) -> PaimonSnapshot:
    kind = raw.get("commitKind")
    if kind not in KINDS:
        raise FormatError(f"is {kind!r}; expected one of {', '.join(KINDS)}", field="commitKind")
    properties = raw.get("properties") or {}
    if not isinstance(properties, dict):
        raise FormatError(f"is {properties!r}; expected an object", field="properties")
    return PaimonSnapshot(
        id=whole(raw, "id"),
        schema_id=whole(raw, "schemaId"),
        base_manifest_list=_name(raw, "baseManifestList"),
        delta_manifest_list=_name(raw, "deltaManifestList"),
        changelog_manifest_list=_name(raw, "changelogManifestList"),
        index_manifest=_name(raw, "indexManifest"),
        commit_user=str(raw.get("commitUser", "")),
        commit_identifier=whole(raw, "commitIdentifier", default=-1),
        commit_kind=kind,
        time_ms=whole(raw, "timeMillis", default=0),
        total_record_count=_optional(raw, "totalRecordCount"),
        delta_record_count=_optional(raw, "deltaRecordCount"),
        changelog_record_count=_optional(raw, "changelogRecordCount"),
        watermark=_optional(raw, "watermark"),
        statistics=_name(raw, "statistics"),
        next_row_id=_optional(raw, "nextRowId"),
        writer_version=_text(raw, "writerVersion"),
        properties={str(key): str(value) for key, value in properties.items()},
    )


def _optional(raw: Mapping[str, Any], name: str) -> int | None:
    return None if raw.get(name) is None else whole(raw, name)


def _text(raw: Mapping[str, Any], name: str) -> str | None:
    value = raw.get(name)
    if value is not None and not isinstance(value, str):
        raise FormatError(f"is {value!r}; expected text", field=name)
    return value


def _name(raw: Mapping[str, Any], name: str) -> str | None:
    value = _text(raw, name)
    if value is not None and ("/" in value or value in ("", ".", "..")):
        raise FormatError(f"is {value!r}; expected a file name", field=name)
    return value


def _local_time_ms(value: Any) -> int | None:
    """A Java LocalDateTime as JSON, an array or ISO text; Paimon gives no time zone."""
    try:
        if isinstance(value, list):
            year, month, day, *rest = [int(part) for part in value]
            hour, minute, second, nanos = (*rest, 0, 0, 0, 0)[:4]
            moment = datetime(year, month, day, hour, minute, second, nanos // 1000, UTC)
        elif isinstance(value, str):
            moment = datetime.fromisoformat(value).replace(tzinfo=UTC)
        else:
            return None
        return int(moment.timestamp() * 1000)
    except (ValueError, TypeError, OverflowError):
        raise FormatError(f"is {value!r}; expected a time", field="tagCreateTime") from None


def _seconds(value: Any) -> int | None:
    """A Java Duration as JSON seconds, in milliseconds."""
    if value is None:
        return None
    try:
        return int(float(value) * 1000)
    except (ValueError, TypeError, OverflowError):
        raise FormatError(f"is {value!r}; expected seconds", field="tagTimeRetained") from None
