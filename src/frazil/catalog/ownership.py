"""Which files are a table's own: the one place that decides what may be deleted.

A table *may hold* files below its location and below the folders that its properties name. It
*owns* a folder alone when no other table of the catalog may hold files there, when the folder is
its `data`, its `metadata`, its `clients` or named by a property, and when neither the warehouse nor
the catalog's database lies in it. From this follow the two rules that purge, expiry and orphan
removal keep:

- A file that the table's metadata names is deleted only where the table may hold files, where no
  other table's folder is closer to it, and where no table that shares the folder reaches it.
- A file that nothing names is deleted only in a folder that the table owns alone.

For them to hold, no table takes a file that is another's: its owner knows nothing of a second table
that reads it and would delete it. Clones do, and their source keeps what they read by a tag. A
table that takes a file of nobody's notes the folder: whoever owns it later shares it.

Places are compared by their canonical form (`frazil.storage.places`). Reads no file, deletes none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from frazil.errors import InvalidInput, Unsupported
from frazil.format import paths
from frazil.format.checks import CLIENT_FOLDER, PATH_PROPERTIES, added_folders, client_location
from frazil.format.metadata.metadata import TableMetadata
from frazil.properties.registry import GC_ENABLED
from frazil.storage import Places, is_local, local_path
from frazil.value_classes import field, frozen

if TYPE_CHECKING:
    import pyarrow as pa

SOURCE_UUID = "frazil.clone.source-uuid"
SOURCE_LOCATION = "frazil.clone.source-location"
PAIMON_LOCATION = "paimon.location"
UNCERTAIN = "frazil.recovery.uncertain"
"""The property of a recovered table whose files were ambiguous."""

SOURCES = (SOURCE_LOCATION, PAIMON_LOCATION)
"""Properties that name a table whose files this one reads and must leave alone."""
_SOURCE = "what this table reads"
_STRANGE = re.compile(r"//|/\.\.?(/|$)")


@frozen
class TablePlace:
    """Where a table keeps its files: its location, and the folders that properties name.

    `added` are folders of files that it was given and does not own. `open` gives the table's head;
    None when it cannot be opened from here.
    """

    name: str
    location: str
    folders: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    source_uuid: str | None = None
    open: Callable[[], Any] | None = field(default=None, repr=False, compare=False)

    @staticmethod
    def of(
        name: str,
        location: str,
        properties: Mapping[str, Any],
        *,
        open: Callable[[], Any] | None = None,
    ) -> TablePlace:
        """From a table's location and properties."""
        base = location.rstrip("/")
        folders = [f"{base}/data", f"{base}/metadata"]
        for key in PATH_PROPERTIES:
            value = properties.get(key)
            if isinstance(value, str) and value.strip("/"):
                is_absolute = value.startswith("/") or paths.is_absolute(value)
                folders.append(value if is_absolute else f"{base}/{value}")
        folders += [f"{base}/{CLIENT_FOLDER}", client_location(base, properties)]
        source = properties.get(SOURCE_UUID)
        return TablePlace(
            name=name,
            location=base,
            folders=tuple(dict.fromkeys(folder.rstrip("/") for folder in folders)),
            added=added_folders(properties),
            source_uuid=source if isinstance(source, str) else None,
            open=open,
        )


@frozen
class OtherTables:
    """What else a catalog knows: its other tables, its warehouse, the file of its database."""

    tables: tuple[TablePlace, ...] = ()
    warehouse: str | None = None
    database: str | None = None

    def sharing(self, place: str) -> str | None:
        """A table that has one of its folders at a place, around it or below it: what removes
        orphans there would take its files."""
        folder = Places().folder(place)
        for table in self.tables:
            folders = [Places().folder(table_folder) for table_folder in table.folders]
            if any(
                folder.startswith(table_folder) or table_folder.startswith(folder)
                for table_folder in folders
            ):
                return table.name
        return None


def relevant_to(others: OtherTables, metadata: TableMetadata) -> OtherTables:
    """What of a neighbourhood concerns one table: tables that lie in its folders or around them,
    and those that were cloned from it. Whatever `Ownership` decides of it stays the same."""
    places = Places()
    mine = TablePlace.of("", metadata.location, metadata.properties)
    folders = [places.folder(folder) for folder in (mine.location, *mine.folders)]
    uuid = str(metadata.table_uuid)

    def concerns(folder: str) -> bool:
        its = places.folder(folder)
        return any(its.startswith(own) or own.startswith(its) for own in folders)

    tables = tuple(
        table
        for table in others.tables
        if table.source_uuid == uuid
        or any(concerns(folder) for folder in (table.location, *table.folders, *table.added))
    )
    file = others.database
    inside = file is not None and places.file(file).startswith(tuple(folders))
    return OtherTables(tables=tables, warehouse=others.warehouse, database=file if inside else None)


def check_certain(metadata: TableMetadata, what: str, *, name: str) -> None:
    """Refuse to delete files of a recovered table that has not been confirmed."""
    doubt = metadata.properties.get(UNCERTAIN)
    if doubt is not None:
        raise Unsupported(
            f"{name}: the table was recovered and its files left doubts ({doubt}). Files "
            f"that seem unused may be its newest rows. Check the rows, then allow {what} by "
            f"removing the property {UNCERTAIN}",
            feature=f"{what} of a table whose recovery is uncertain",
        )


class Ownership:
    """Answers for one table whether a file or folder is its own."""

    def __init__(
        self, metadata: TableMetadata, location: str, others: OtherTables, *, name: str = ""
    ) -> None:
        self._places = Places()
        self.name = name or location
        self.place = TablePlace.of(self.name, location, metadata.properties)
        self._metadata = metadata
        self._location = self._places.folder(location)
        self._mine = {self._places.folder(folder): folder for folder in self.place.folders}
        self._mine.setdefault(self._location, location.rstrip("/"))
        self._own_folders = tuple(
            f"{_with_one_scheme(folder).rstrip('/')}/" for folder in self._mine.values()
        )
        sources = (metadata.properties.get(key) for key in SOURCES)
        borrowed = [TablePlace.of(_SOURCE, source, {}) for source in sources if source]
        tables = (*others.tables, *borrowed)
        self._others = [
            (self._places.folder(folder), folder == other.location, other)
            for other in tables
            for folder in (other.location, *other.folders)
        ]
        self._readers = [
            (self._places.folder(folder), other) for other in tables for folder in other.added
        ]
        warehouse, database = others.warehouse, others.database
        self._warehouse = None if warehouse is None else self._places.folder(warehouse)
        self._database = None if database is None else self._places.file(database)

    @staticmethod
    def of(head: Any, metadata: TableMetadata, location: str, *, name: str = "") -> Ownership:
        """For the table of a head, which knows its neighbours if it is one of a catalog's."""
        neighbours = getattr(head, "neighbourhood", None)
        others = OtherTables() if neighbours is None else neighbours()
        return Ownership(metadata, location, others, name=name)

    @property
    def folders(self) -> tuple[str, ...]:
        """Where the table may hold files, canonical."""
        return tuple(self._mine)

    def canonical(self, path: str) -> str:
        """What two spellings of one file have in common."""
        return self._places.file(path)

    def canonical_folder(self, path: str) -> str:
        """The same for a folder, with a slash at its end."""
        return self._places.folder(path)

    def canonical_all(self, paths: pa.Array) -> tuple[pa.DictionaryArray, pa.Array]:
        """`canonical` for a column: folders, and names in them."""
        return self._places.files(paths)

    def may_delete(self, path: str) -> bool:
        """Whether a file that this table's metadata names lies where it may be deleted, unless a
        table among `sharers` reaches it too."""
        text = _with_one_scheme(path)
        tail = next(
            (text[len(folder) :] for folder in self._own_folders if text.startswith(folder)),
            None,
        )
        if tail is None or _STRANGE.search(f"/{tail}"):
            return False  # another spelling may be in use elsewhere; orphan removal compares them
        return self._is_mine(self._places.file(path))

    def sharers(self, path: str) -> tuple[TablePlace, ...]:
        """Other tables that may hold a file in the same folder."""
        file = self._places.file(path)
        owner_folder = self._closest(file)
        sharers: dict[str, TablePlace] = {}
        for its, is_location, other in self._others:
            if owner_folder is None or not file.startswith(its):
                continue
            if not self._is_below(owner_folder, its, is_location):
                sharers[other.location] = other
        for its, other in self._readers:
            if owner_folder is not None and file.startswith(its):
                sharers[other.location] = other
        return tuple(sharers.values())

    def refuse_files_of_others(self, paths: Iterable[str]) -> None:
        """Refuse files that another table of the catalog may delete without this one being asked:
        they lie in a folder of it, and in none of this table's that is as close."""
        for path in paths:
            file = self._places.file(path)
            owner_folder = self._closest(file) or ""
            for its, _, other in self._others:
                if other.name != _SOURCE and file.startswith(its) and len(its) > len(owner_folder):
                    raise InvalidInput(
                        f"{path}: is a file of table {other.name}, which deletes it when its own "
                        "snapshots need it no more. Clone that table, append its rows, or copy "
                        "the file"
                    )

    def owned_folders(self) -> dict[str, str]:
        """Folders that only this table owns, outermost: canonical, with the table's spelling."""
        alone = {
            folder: spelled
            for folder, spelled in self._mine.items()
            if folder != self._location and self._is_alone(folder)
        }
        return {
            folder: spelled
            for folder, spelled in alone.items()
            if not any(folder != other and folder.startswith(other) for other in alone)
        }

    def shared_folders(self) -> tuple[str, ...]:
        """Folders of this table in which nothing unknown is deleted, because others use them."""
        alone = self.owned_folders()
        return tuple(
            spelled
            for folder, spelled in self._mine.items()
            if folder != self._location and not folder.startswith(tuple(alone))
        )

    def owns_unknown(self, path: str) -> bool:
        """Whether a file that nothing names may be deleted: no other table may hold it."""
        file = self._places.file(path)
        owner_folder = self._closest(file)
        if owner_folder is None or self._holds_catalog(owner_folder):
            return False
        return self._is_mine(file) and not self.sharers(path)

    def below(self, location: str) -> str:
        """The canonical form of a folder that must lie in one of this table's."""
        folder = self._places.folder(location)
        if not folder.startswith(tuple(self._mine)):
            raise InvalidInput(f"{location} is not below the table's location; nothing was checked")
        return folder

    def clones(self) -> tuple[str, ...]:
        """Tables of the catalog that read this table's files."""
        uuid = str(self._metadata.table_uuid)
        return tuple(sorted({o.name for _, _, o in self._others if o.source_uuid == uuid}))

    def check_collects(self, what: str) -> None:
        """Refuse to delete files of a table that says others use them, or that is in doubt."""
        if not collects_garbage(self._metadata):
            raise Unsupported(
                f"{self.name}: gc.enabled is false, so others may use its files and none is "
                f"deleted. Use dry_run to look, or remove the property to allow {what}",
                feature=f"{what} of a table with gc.enabled=false",
            )
        self.check_certain(what)

    def check_certain(self, what: str) -> None:
        """Refuse to delete files of a recovered table that has not been confirmed."""
        check_certain(self._metadata, what, name=self.name)

    def _closest(self, file: str) -> str | None:
        return max(
            (folder for folder in self._mine if file.startswith(folder)), key=len, default=None
        )

    def _is_mine(self, file: str) -> bool:
        owner_folder = self._closest(file)
        # A database has side files: catalog.db-wal, catalog.db-shm.
        if owner_folder is None or (self._database is not None and file.startswith(self._database)):
            return False
        return not any(
            file.startswith(its) and len(its) > len(owner_folder) for its, _, _ in self._others
        )

    def _is_below(self, mine: str, its: str, is_location: bool) -> bool:
        """Whether a folder of this table is set apart though it lies in another table's location:
        a table inside another one has its own folders to itself."""
        inside = self._location != its and self._location.startswith(its)
        return is_location and inside and mine.startswith(self._location)

    def _holds_catalog(self, folder: str) -> bool:
        places = (self._warehouse, self._database)
        return any(place is not None and place.startswith(folder) for place in places)

    def _is_alone(self, folder: str) -> bool:
        if self._holds_catalog(folder):
            return False
        return not any(
            (its.startswith(folder) or folder.startswith(its))
            and not self._is_below(folder, its, is_location)
            for its, is_location, _ in self._others
        ) and not any(its.startswith(folder) or folder.startswith(its) for its, _ in self._readers)


def collects_garbage(metadata: TableMetadata) -> bool:
    """Whether files with rows may be deleted: not when `gc.enabled` says that others use them."""
    # What cannot be read counts as false, as in Iceberg's own readers: nothing is deleted.
    return GC_ENABLED.lenient(metadata.properties, otherwise=False)


def _with_one_scheme(path: str) -> str:
    """One text for the schemes that mean the same; nothing is looked up."""
    if is_local(path):
        return "/" + local_path(path).lstrip("/")
    scheme, mark, rest = path.partition("://")
    schemes = {"s3a": "s3", "s3n": "s3"}
    return f"{schemes.get(scheme.lower(), scheme.lower())}{mark}{rest}"
