"""Metadata JSON as a rendering of what the catalog holds: when it is due, where it goes, its bytes.

The catalog is the authority; a JSON file is written at create, every `write.metadata.json-every`
versions, when the schema, partitioning or sort order changes, and on demand. It serves other
tools and `recover`. Knows nothing of databases.

A file names every snapshot. So that files do not grow with the square of the history, the default
is 100 versions or half of the history, whichever is more: all files together are twice as
large as the newest one. Those of many snapshots are compressed, under the name that Iceberg gives
such files. `recover` reads what is missing from the roots.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from frazil.errors import AlreadyExists, FormatError, NotFound
from frazil.format.checks import check_not_encrypted
from frazil.format.metadata import metadata_json
from frazil.format.metadata.metadata import FORMAT_VERSION, History, TableMetadata
from frazil.format.paths import is_absolute, relativise, resolve
from frazil.properties.registry import (
    DELETE_AFTER_COMMIT,
    JSON_EVERY,
    METADATA_COMPRESSION,
    METADATA_PATH,
    PREVIOUS_VERSIONS_MAX,
)
from frazil.storage import Storage
from frazil.value_classes import replace

_HISTORY_SHARE = 2
_PLAIN_BYTES = 1 << 14
"""JSON up to this size is left for people to read. Snapshots make it longer, and are alike: six of
seven bytes can go."""
_PLAIN = ("none", "uncompressed")
_LEVEL = 1


def json_every(metadata: TableMetadata) -> int:
    """How many versions apart JSON files are; 0 is never, 1 is every version."""
    return JSON_EVERY.of(metadata.properties)


def previous_max(metadata: TableMetadata) -> int:
    """How many earlier JSON files the metadata log remembers."""
    return max(1, PREVIOUS_VERSIONS_MAX.of(metadata.properties))


def deletes_previous(metadata: TableMetadata) -> bool:
    """Whether JSON files that the log no longer remembers are deleted."""
    return DELETE_AFTER_COMMIT.lenient(metadata.properties, otherwise=False)


def is_due(
    before: TableMetadata,
    after: TableMetadata,
    *,
    version: int,
    rendered_version: int | None,
    snapshot_count: Callable[[], int],
) -> bool:
    """Whether a version gets a JSON file. `snapshot_count` is asked once in `json-every`
    versions."""
    every = json_every(after)
    if every == 0:
        return False
    if rendered_version is None or _shape(before) != _shape(after):
        return True
    since = version - rendered_version
    if JSON_EVERY.key in after.properties:
        return since >= every
    return since > 0 and since % every == 0 and since * _HISTORY_SHARE >= snapshot_count()


def metadata_folder(metadata: TableMetadata) -> str:
    """The folder that holds a table's JSON files."""
    folder = METADATA_PATH.of(metadata.properties) or "metadata"
    if folder.startswith("/"):
        return folder.rstrip("/")
    return resolve(metadata.location, folder.rstrip("/"))


def render(metadata: TableMetadata, history: History, *, version: int, storage: Storage) -> str:
    """Write the JSON of one version under a new name; returns its location."""
    metadata_log = history.metadata_log[-previous_max(metadata) :]
    data = metadata_json.dumps(metadata, replace(history, metadata_log=metadata_log))
    ending = "metadata.json"
    if len(data) > _PLAIN_BYTES and METADATA_COMPRESSION.of(metadata.properties) not in _PLAIN:
        import gzip  # few commits write JSON so long

        data, ending = gzip.compress(data, _LEVEL, mtime=0), f"gz.{ending}"
    path = f"{metadata_folder(metadata)}/{version:05d}-{uuid.uuid4()}.{ending}"
    storage.write_new(path, data)
    return path


@contextmanager
def first_version(
    metadata: TableMetadata, history: History, storage: Storage, *, instead: str | None = None
) -> Iterator[str | None]:
    """The location of the JSON file of a new table: one that is written here, and deleted if the
    table is not entered, or `instead` where the table asks for none."""
    from frazil.format.metadata.definition_checks import check_shape

    check_shape(metadata)
    if not json_every(metadata):
        yield instead
        return
    rendered = render(metadata, history, version=0, storage=storage)
    try:
        yield rendered
    except (AlreadyExists, NotFound):
        storage.delete(rendered)
        raise


def read(
    path: str,
    *,
    storage: Storage,
    location: str | None = None,
    rejected: list[FormatError] | None = None,
) -> tuple[TableMetadata, History]:
    """Read a metadata JSON file of any supported version. With a list for `rejected`, values that
    the table can do without are left out and noted there."""
    data = storage.read(path)
    return metadata_json.loads(
        data, path=path, location=location, limits=storage.limits, rejected=rejected
    )


def read_moved(
    path: str, *, storage: Storage, location: str | None = None
) -> tuple[TableMetadata, History]:
    """Read a JSON file that may have been copied elsewhere together with its table.

    A v4 table's paths are relative, so the table is where its JSON is, unless its JSON files are
    kept apart from it on purpose. One of Java's interim v4 gets its missing derived columns.
    """
    metadata, history = read(path, storage=storage, location=location, rejected=[])
    check_not_encrypted(path, metadata.properties, metadata.extra)
    folder, _, _ = path.rpartition("/")
    place, _, last = folder.rpartition("/")
    apart = METADATA_PATH.key in metadata.properties
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
