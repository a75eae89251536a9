"""Metadata JSON as a rendering of what the catalog holds: when it is due, where it goes, its bytes.

The catalog is the authority; a JSON file is written at create, every `write.metadata.json-every`
versions, when the schema, partitioning or sort order changes, and on demand. It serves other
tools and `recover`. Knows nothing of databases.
"""

from __future__ import annotations

import uuid
from dataclasses import replace

from frazil.errors import FormatError, InvalidInput
from frazil.format import metadata_json
from frazil.format.checks import METADATA_PATH
from frazil.format.metadata import FORMAT_VERSION, History, TableMetadata
from frazil.format.paths import is_absolute, relativise, resolve
from frazil.storage import Storage

JSON_EVERY = "write.metadata.json-every"
JSON_EVERY_DEFAULT = 100
PREVIOUS_MAX = "write.metadata.previous-versions-max"
PREVIOUS_MAX_DEFAULT = 100
DELETE_AFTER_COMMIT = "write.metadata.delete-after-commit.enabled"


def json_every(metadata: TableMetadata) -> int:
    """How many versions apart JSON files are; 0 is never, 1 is every version."""
    return _count(metadata, JSON_EVERY, JSON_EVERY_DEFAULT)


def previous_max(metadata: TableMetadata) -> int:
    """How many earlier JSON files the metadata log remembers."""
    return max(1, _count(metadata, PREVIOUS_MAX, PREVIOUS_MAX_DEFAULT))


def deletes_previous(metadata: TableMetadata) -> bool:
    """Whether JSON files that the log no longer remembers are deleted."""
    return metadata.properties.get(DELETE_AFTER_COMMIT, "false").lower() == "true"


def is_due(
    before: TableMetadata, after: TableMetadata, *, version: int, rendered_version: int | None
) -> bool:
    """Whether a version gets a JSON file."""
    every = json_every(after)
    if every == 0:
        return False
    if rendered_version is None or version - rendered_version >= every:
        return True
    return _shape(before) != _shape(after)


def metadata_folder(metadata: TableMetadata) -> str:
    """The folder that holds a table's JSON files."""
    folder = metadata.properties.get(METADATA_PATH) or "metadata"
    if folder.startswith("/"):
        return folder.rstrip("/")
    return resolve(metadata.location, folder.rstrip("/"))


def render(metadata: TableMetadata, history: History, *, version: int, storage: Storage) -> str:
    """Write the JSON of one version under a new name; returns its location."""
    kept = history.metadata_log[-previous_max(metadata) :]
    data = metadata_json.dumps(metadata, replace(history, metadata_log=kept))
    path = f"{metadata_folder(metadata)}/{version:05d}-{uuid.uuid4()}.metadata.json"
    storage.write_new(path, data)
    return path


def read(
    path: str,
    *,
    storage: Storage,
    location: str | None = None,
    spoiled: list[FormatError] | None = None,
) -> tuple[TableMetadata, History]:
    """Read a metadata JSON file of any supported version. With a list for `spoiled`, values that
    the table can do without are left out and noted there."""
    data = storage.read(path)
    return metadata_json.loads(
        data, path=path, location=location, limits=storage.limits, spoiled=spoiled
    )


def read_moved(
    path: str, *, storage: Storage, location: str | None = None
) -> tuple[TableMetadata, History]:
    """Read a JSON file that may have been copied elsewhere together with its table.

    A v4 table's paths are relative, so the table is where its JSON is, unless its JSON files are
    kept apart from it on purpose. One of Java's interim v4 gets the derived columns it has not.
    """
    metadata, history = read(path, storage=storage, location=location, spoiled=[])
    folder, _, _ = path.rpartition("/")
    place, _, last = folder.rpartition("/")
    apart = METADATA_PATH in metadata.properties
    is_ours = metadata.format_version >= FORMAT_VERSION
    if location is None and is_ours and not apart and last == "metadata" and place:
        metadata = metadata.relocated(place)
    if is_ours:
        metadata = as_spelled(metadata.upgraded(now_ms=metadata.last_updated_ms), history)
    return metadata, history


def as_spelled(metadata: TableMetadata, history: History) -> TableMetadata:
    """The metadata with its location spelled as in the paths of old manifests.

    Writers mix `file:/x` and `file:///x`; deletes of v2 and v3 name data files by their full path,
    so addresses made from the location must be the same text.
    """
    for snapshot in reversed(history.snapshots):
        listed = snapshot.manifest_list or next(iter(snapshot.manifests or ()), None)
        if listed is None:
            continue
        tail = relativise(metadata.location, listed)
        if not is_absolute(tail) and listed.endswith(f"/{tail}"):
            return metadata.relocated(listed.removesuffix(f"/{tail}"))
    return metadata


def _shape(metadata: TableMetadata) -> tuple[tuple[int, int], ...]:
    """What readers of an old JSON file would miss most. Ids grow, so lengths reveal additions."""
    return (
        (len(metadata.schemas), metadata.current_schema_id),
        (len(metadata.partition_specs), metadata.default_spec_id),
        (len(metadata.sort_orders), metadata.default_sort_order_id),
    )


def _count(metadata: TableMetadata, key: str, default: int) -> int:
    text = metadata.properties.get(key)
    if text is None:
        return default
    if not text.isdecimal() or not text.isascii():
        raise InvalidInput(f"property {key} is {text!r}; expected a whole number, 0 or more")
    return int(text)
