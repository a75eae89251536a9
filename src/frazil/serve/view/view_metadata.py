"""View metadata by the Iceberg view specification: a new view, and updates of one. Pure."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import msgspec

from frazil.iceberg.schema import load_schema
from frazil.serve.rest_errors import RestError
from frazil.serve.wire import wire

Metadata = dict[str, Any]
LAST_ADDED = -1
HISTORY = "version.history.num-entries"
HISTORY_DEFAULT = 10
DROP_DIALECTS = "replace.drop-dialect.allowed"


def new_view(request: wire.CreateView, *, location: str) -> Metadata:
    """The metadata of a view that is being created."""
    metadata: Metadata = {
        "view-uuid": str(uuid.uuid4()),
        "format-version": 1,
        "location": location,
        "schemas": [],
        "current-version-id": LAST_ADDED,
        "versions": [],
        "version-log": [],
        "properties": dict(request.properties),
    }
    posted = {**request.view_version, "schema-id": LAST_ADDED}
    return updated(
        metadata,
        [
            wire.AddSchema(schema=request.schema),
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
            case wire.AssignUuid(uuid=posted):
                if metadata["versions"] and posted.lower() != metadata["view-uuid"]:
                    raise _invalid("Cannot reassign uuid")
                metadata["view-uuid"] = posted.lower()
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
                removed = set(keys)
                properties = {k: v for k, v in metadata["properties"].items() if k not in removed}
                metadata["properties"] = properties
            case wire.AddViewVersion(view_version=version):
                added["version"] = _add_version(metadata, version, added.get("schema"))
            case wire.SetCurrentViewVersion(view_version_id=number):
                _set_current(metadata, added.get("version") if number == LAST_ADDED else number)
    _trim(metadata)
    return metadata


def _add_schema(metadata: Metadata, raw: wire.Json) -> int:
    try:
        schema = load_schema(raw)
    except (ValueError, TypeError) as error:
        raise _invalid(f"Invalid schema: {error}") from error
    for earlier in metadata["schemas"]:
        if load_schema(earlier).as_struct() == schema.as_struct():
            return int(earlier["schema-id"])
    number = max((int(earlier["schema-id"]) for earlier in metadata["schemas"]), default=-1) + 1
    metadata["schemas"] = [*metadata["schemas"], {**raw, "schema-id": number}]
    return number


def _add_version(metadata: Metadata, posted: wire.Json, last_schema: int | None) -> int:
    version = dict(posted)
    if version.get("schema-id") == LAST_ADDED:
        if last_schema is None:
            raise _invalid("no schema was added that -1 could mean")
        version["schema-id"] = last_schema
    shape = _version(version)
    if all(int(schema["schema-id"]) != shape.schema_id for schema in metadata["schemas"]):
        raise _invalid(f"Cannot add version with unknown schema: {shape.schema_id}")
    dialects = [representation.dialect.lower() for representation in shape.representations]
    for dialect in dialects:
        if dialects.count(dialect) > 1:
            raise _invalid(
                f"Invalid view version: Cannot add multiple queries for dialect {dialect}"
            )
    for earlier in metadata["versions"]:
        if _content(earlier) == _content(version):
            return int(earlier["version-id"])
    number = max((int(earlier["version-id"]) for earlier in metadata["versions"]), default=0) + 1
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
    return {
        representation.get("dialect", "").lower()
        for representation in version.get("representations", ())
    }


def _trim(metadata: Metadata) -> None:
    """Forget the oldest versions beyond the number that is kept, never the current one."""
    text = str(metadata["properties"].get(HISTORY, HISTORY_DEFAULT))
    if not re.fullmatch("[0-9]{1,18}", text) or int(text) < 1:
        raise _invalid(f"{HISTORY} must be positive but was {text}")
    current = metadata["current-version-id"]
    newest = sorted(metadata["versions"], key=lambda v: int(v["version-id"]), reverse=True)
    others = [v for v in newest if v["version-id"] != current][: int(text) - 1]
    version_ids = {v["version-id"] for v in others} | {current}
    metadata["versions"] = [v for v in metadata["versions"] if v["version-id"] in version_ids]
    log: list[dict[str, Any]] = []
    for entry in metadata["version-log"]:
        if entry["version-id"] in version_ids:
            log.append(entry)
        else:
            log = []  # a log with a gap would be wrong
    metadata["version-log"] = log


def checked(document: object) -> Metadata:
    """View metadata that a client made; 400 unless it is one that can be shown and changed."""
    if not isinstance(document, dict):
        raise _invalid("Invalid view: expected an object")
    metadata: Metadata = deepcopy(document)
    properties = metadata.setdefault("properties", {})
    metadata.setdefault("version-log", [])
    if not isinstance(properties, dict) or not all(isinstance(t, str) for t in properties.values()):
        raise _invalid("Invalid view: properties must be text")
    if metadata.get("format-version") != 1 or not isinstance(metadata.get("location"), str):
        raise _invalid("Invalid view: expected format-version 1 and a location")
    try:
        metadata["view-uuid"] = str(uuid.UUID(metadata["view-uuid"]))
        schemas = {int(schema["schema-id"]) for schema in metadata["schemas"]}
        for schema in metadata["schemas"]:
            load_schema(schema)
        versions = [_version(schema) for schema in metadata["versions"]]
        for version in versions:
            if version.schema_id not in schemas:
                raise _invalid(f"Invalid view: there is no schema {version.schema_id}")
        current = metadata["current-version-id"]
        if current not in [version.version_id for version in versions]:
            raise _invalid("Invalid view: there is no current version")
        for entry in metadata["version-log"]:
            int(entry["version-id"]), int(entry["timestamp-ms"])
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise _invalid(f"Invalid view: {error!r}") from error
    _trim(metadata)
    return metadata


def _version(version: object) -> wire.ViewVersion:
    """A version, if it is one; clients keep other things in it, too."""
    try:
        return msgspec.convert(version, wire.ViewVersion)
    except msgspec.ValidationError as error:
        raise _invalid(f"Invalid view version: {error}") from error


def _invalid(message: str) -> RestError:
    """400, of the type that clients turn into their own error for invalid arguments."""
    return RestError(400, "IllegalArgumentException", message)
