"""Tables of other writers, opened read-only: by metadata file, by folder, or through PyIceberg.

Finds the current metadata JSON and puts a `JsonHead` on it; everything above reads such a table
as any other. A PyIceberg catalog (SQL, REST, Hive, Glue, …) is asked through PyIceberg's own
objects, so its configuration and credentials stay with it. Writes nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from frazil.catalog.json_head import JsonHead
from frazil.catalog.names import Identifier
from frazil.catalog.storages import Storages
from frazil.commit.handle import TableHandle
from frazil.errors import CatalogError, FormatError, InvalidInput, NotFound
from frazil.format.checks import check_text
from frazil.format.paths import is_absolute
from frazil.legacy.read.legacy_decoder import LegacyDecoder
from frazil.storage import Storage
from frazil.tree.cache import ManifestCache
from frazil.value_classes import frozen

VERSION_HINT = "version-hint.text"
_METADATA_FILE = re.compile(r"(?:v(\d+)|(\d+)-[^/]*)(?:\.gz)?\.metadata\.json(?:\.gz)?$")
_SUFFIXES = (".metadata.json", ".gz.metadata.json", ".metadata.json.gz")
_JSON = (".json", ".json.gz")

StorageFor = Callable[[str], Storage]
Source = str | os.PathLike[str] | Any


@frozen
class Opened:
    """A table found: where its metadata is now, how to look again, and what serves its files."""

    metadata_location: str
    locate: Callable[[], str]
    storage: StorageFor
    identifier: Identifier | None = None


def open_table(
    source: Source,
    name: str | tuple[str, ...] | None = None,
    *,
    storage: StorageFor | None = None,
    cache: ManifestCache | None = None,
) -> TableHandle:
    """A read-only handle on a table of other writers.

    `source` is a metadata file, a table's folder, a PyIceberg `Table`, or a PyIceberg `Catalog`
    together with the table's name. `storage` serves files of the first two.
    """
    source_table = _located(source, name, storage or Storages())
    head = JsonHead(
        source_table.identifier or _named_after(source_table.metadata_location),
        source_table.metadata_location,
        locate=source_table.locate,
        storage=source_table.storage,
    )
    state = head.state
    return TableHandle.of(
        str(head.identifier),
        head,
        source_table.storage(state.metadata.location),
        state=state,
        cache=cache,
        decoder=LegacyDecoder(),
    )


def _located(source: Source, name: str | tuple[str, ...] | None, storage: StorageFor) -> Opened:
    if hasattr(source, "load_table"):
        if name is None:
            raise InvalidInput(
                "a PyIceberg catalog needs a table name: open_iceberg(catalog, name)"
            )
        return _of_pyiceberg(_asked(lambda: source.load_table(name), name))
    if name is not None:
        raise InvalidInput("name is accepted only with a PyIceberg catalog")
    if hasattr(source, "metadata_location"):
        return _of_pyiceberg(source)
    if not isinstance(source, str | os.PathLike):
        raise InvalidInput(
            f"{type(source).__name__} is not a table; expected a metadata file, a table's folder, "
            "a PyIceberg Table, or a PyIceberg Catalog and a name"
        )
    return _of_path(_absolute(os.fspath(source)), storage)


def _of_pyiceberg(table: Any) -> Opened:
    properties = {key: str(value) for key, value in table.io.properties.items()}

    def locate() -> str:
        try:
            return str(_asked(table.refresh, table.name()).metadata_location)
        except NotImplementedError:  # a StaticTable stays where it is
            return str(table.metadata_location)

    parts = tuple(table.name())
    is_named = len(parts) > 1 and "/" not in parts[-1]
    return Opened(
        metadata_location=str(table.metadata_location),
        locate=locate,
        storage=Storages(properties),
        identifier=Identifier(namespace=parts[:-1], name=parts[-1]) if is_named else None,
    )


def _asked(question: Callable[[], Any], name: object) -> Any:
    """PyIceberg's answer, or its complaint as ours."""
    from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

    try:
        return question()
    except (NoSuchTableError, NoSuchNamespaceError) as error:
        raise NotFound(f"{name}: {error}") from error
    except NotImplementedError:
        raise
    except Exception as error:  # whatever the service or its driver raises
        raise CatalogError(f"{name}: PyIceberg's catalog failed: {error}") from error


def _of_path(path: str, storage: StorageFor) -> Opened:
    if path.endswith(_JSON):
        return Opened(metadata_location=path, locate=lambda: path, storage=storage)
    folder = path.rstrip("/")

    def locate() -> str:
        return newest_metadata(folder, storage(folder))

    return Opened(metadata_location=locate(), locate=locate, storage=storage)


def newest_metadata(folder: str, storage: Storage) -> str:
    """The current metadata JSON of the table in a folder, by its version hint, else by its name."""
    metadata = folder if folder.endswith("/metadata") else f"{folder}/metadata"
    hinted = _hinted(metadata, storage)
    if hinted is not None:
        return hinted
    candidates: list[tuple[int, int, str]] = []
    for info in storage.list(metadata):
        name = info.path.rpartition("/")[2]
        version = _METADATA_FILE.match(name)
        if version is not None:
            number = int(version.group(1) or version.group(2))
            candidates.append((number, info.modified_ms, info.path))
    if not candidates:
        raise NotFound(
            f"{folder}: no Iceberg table there; expected {VERSION_HINT} or *.metadata.json in "
            "its metadata folder"
        )
    return max(candidates)[2]


def newest_version(metadata: str, storage: Storage) -> tuple[str, int] | None:
    """The last of the metadata files named by version, with its number, as the hint leads to it.

    Writers may be behind with the hint, so later versions beside it are looked for.
    """
    hint = _hint(metadata, storage)
    version = int(hint) if hint is not None and hint.isdigit() else 1
    current: tuple[str, int] | None = None
    while (later := _versioned(metadata, version, storage)) is not None:
        current, version = (later, version), version + 1
    return current


def _hinted(metadata: str, storage: Storage) -> str | None:
    """What the version hint says: a number, or by other writers' habit a name."""
    hint = _hint(metadata, storage)
    if hint is None:
        return None
    if hint.isdigit():
        newest = newest_version(metadata, storage)
        return None if newest is None else newest[0]
    file_name = hint if hint.endswith(_SUFFIXES) else f"{hint}.metadata.json"
    return file_name if is_absolute(file_name) else f"{metadata}/{file_name}"


def _hint(metadata: str, storage: Storage) -> str | None:
    try:
        return storage.read(f"{metadata}/{VERSION_HINT}").decode("utf-8").strip()
    except NotFound:
        return None
    except UnicodeDecodeError as error:
        raise FormatError("is not text", path=f"{metadata}/{VERSION_HINT}") from error


def _versioned(metadata: str, version: int, storage: Storage) -> str | None:
    candidates = [f"{metadata}/v{version}{suffix}" for suffix in _SUFFIXES]
    return next((path for path in candidates if storage.exists(path)), None)


def _absolute(path: str) -> str:
    check_text(path, "source", empty=False)
    return path if is_absolute(path) else str(Path(path).expanduser().resolve())


def _named_after(metadata_location: str) -> Identifier:
    """A name for a table that has none: the last two folders above its metadata."""
    parts = [part for part in metadata_location.split("/metadata/")[0].split("/") if part]
    name = parts[-1] if parts else "table"
    above = parts[-2] if len(parts) > 1 and ":" not in parts[-2] else "files"
    return Identifier(namespace=(above,), name=name)


__all__ = ["VERSION_HINT", "Opened", "newest_metadata", "newest_version", "open_table"]
