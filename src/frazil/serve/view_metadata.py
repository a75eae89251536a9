"""View metadata by the Iceberg view specification: a new view, and updates of one. Pure."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from pydantic import ValidationError
from pyiceberg.schema import Schema

from frazil.serve import wire
from frazil.serve.rest_errors import RestError

Metadata = dict[str, Any]
LAST_ADDED = -1
HISTORY = "version.history.num-entries"
HISTORY_DEFAULT = 10
DROP_DIALECTS = "replace.drop-dialect.allowed"


def new_view(wanted: wire.CreateView, *, location: str) -> Metadata:
    """The metadata of a view that is being created."""
    metadata: Metadata = {
        "view-uuid": str(uuid.uuid4()),
        "format-version": 1,
        "location": location,
        "schemas": [],
        "current-version-id": LAST_ADDED,
        "versions": [],
        "version-log": [],
        "properties": dict(wanted.properties),
    }
    posted = {**wanted.view_version, "schema-id": LAST_ADDED}
    return updated(
        metadata,
        [
            wire.AddSchema(schema=wanted.schema),
            wire.AddViewVersion(view_version=posted),
            wire.SetCurrentViewVersion(view_version_id=LAST_ADDED),
        ],
    )


def updated(before: Mapping[str, Any], updates: Sequence[wire.AnyViewUpdate]) -> Metadata:
    """The metadata after updates, in their order."""
    metadata: Metadata = deepcopy(dict(before))
    added: dict[str, int] = {}
    for update in updates:
        match update:
            case wire.AssignUuid(uuid=given):
                if metadata["versions"] and given.lower() != metadata["view-uuid"]:
                    raise _invalid("Cannot reassign uuid")
                metadata["view-uuid"] = given.lower()
            case wire.UpgradeFormat(format_version=version):
                if version != 1:
                    raise _invalid(f"view format version {version} is not known; expected 1")
            case wire.AddSchema(schema=schema):
                added["schema"] = _add_schema(metadata, schema)
            case wire.SetLocation(location=location):
                metadata["location"] = location.rstrip("/")
            case wire.SetProperties(updates=items):
                metadata["properties"] = {**metadata["properties"], **items}
            case wire.RemoveProperties(removals=keys):
                gone = set(keys)
                kept = {k: v for k, v in metadata["properties"].items() if k not in gone}
                metadata["properties"] = kept
            case wire.AddViewVersion(view_version=version):
                added["version"] = _add_version(metadata, version, added.get("schema"))
            case wire.SetCurrentViewVersion(view_version_id=number):
                _set_current(metadata, added.get("version") if number == LAST_ADDED else number)
    _trim(metadata)
    return metadata


def _add_schema(metadata: Metadata, raw: wire.Json) -> int:
    try:
        schema = Schema.model_validate(raw)
    except (ValidationError, ValueError) as error:
        raise _invalid(f"Invalid schema: {error}") from error
    for known in metadata["schemas"]:
        if Schema.model_validate(known).as_struct() == schema.as_struct():
            return int(known["schema-id"])
    number = max((int(known["schema-id"]) for known in metadata["schemas"]), default=-1) + 1
    metadata["schemas"] = [*metadata["schemas"], {**raw, "schema-id": number}]
    return number


def _add_version(metadata: Metadata, posted: wire.Json, last_schema: int | None) -> int:
    version = dict(posted)
    if version.get("schema-id") == LAST_ADDED:
        if last_schema is None:
            raise _invalid("no schema was added that -1 could mean")
        version["schema-id"] = last_schema
    if all(int(each["schema-id"]) != version.get("schema-id") for each in metadata["schemas"]):
        raise _invalid(f"Cannot add version with unknown schema: {version.get('schema-id')}")
    dialects = [each.get("dialect", "").lower() for each in version.get("representations", ())]
    for dialect in dialects:
        if dialects.count(dialect) > 1:
            raise _invalid(
                f"Invalid view version: Cannot add multiple queries for dialect {dialect}"
            )
    for known in metadata["versions"]:
        if _content(known) == _content(version):
            return int(known["version-id"])
    number = max((int(known["version-id"]) for known in metadata["versions"]), default=0) + 1
    metadata["versions"] = [*metadata["versions"], {**version, "version-id": number}]
    return number


def _content(version: Mapping[str, Any]) -> dict[str, Any]:
    """What makes two versions the same: all but their number and time."""
    return {
        key: value
        for key, value in version.items()
        if key not in ("version-id", "timestamp-ms") and value is not None
    }


def _set_current(metadata: Metadata, number: int | None) -> None:
    chosen = next((v for v in metadata["versions"] if v["version-id"] == number), None)
    if number is None or chosen is None:
        raise _invalid(f"Cannot set current version to unknown version: {number}")
    current = metadata["current-version-id"]
    if current == number:
        return
    before = next((v for v in metadata["versions"] if v["version-id"] == current), None)
    may_drop = metadata["properties"].get(DROP_DIALECTS, "false").lower() == "true"
    if before is not None and not may_drop:
        old, new = _dialects(before), _dialects(chosen)
        if not old <= new:
            raise _invalid(
                "Cannot replace view due to loss of view dialects "
                f"({DROP_DIALECTS}=false):\nPrevious dialects: {sorted(old)}\n"
                f"New dialects: {sorted(new)}"
            )
    metadata["current-version-id"] = number
    entry = {"timestamp-ms": chosen["timestamp-ms"], "version-id": number}
    metadata["version-log"] = [*metadata["version-log"], entry]


def _dialects(version: Mapping[str, Any]) -> set[str]:
    return {each.get("dialect", "").lower() for each in version.get("representations", ())}


def _trim(metadata: Metadata) -> None:
    """Forget the oldest versions beyond the number that is kept, never the current one."""
    text = str(metadata["properties"].get(HISTORY, HISTORY_DEFAULT))
    if not text.isdigit() or int(text) < 1:
        raise _invalid(f"{HISTORY} must be positive but was {text}")
    current = metadata["current-version-id"]
    newest = sorted(metadata["versions"], key=lambda v: int(v["version-id"]), reverse=True)
    others = [v for v in newest if v["version-id"] != current][: int(text) - 1]
    kept = {v["version-id"] for v in others} | {current}
    metadata["versions"] = [v for v in metadata["versions"] if v["version-id"] in kept]
    log: list[dict[str, Any]] = []
    for entry in metadata["version-log"]:
        if entry["version-id"] in kept:
            log.append(entry)
        else:
            log = []  # a log with a gap would be wrong
    metadata["version-log"] = log


def _invalid(message: str) -> RestError:
    """400, of the type that clients turn into their own error for invalid arguments."""
    return RestError(400, "IllegalArgumentException", message)
