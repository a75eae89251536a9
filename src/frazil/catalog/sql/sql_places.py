"""Where the tables of a database keep their files, according to its rows.

`frazil_tables.location` holds the canonical form of a location, so that one place has one spelling
there; what the table itself calls it is in its definition.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from frazil.catalog import export
from frazil.catalog.database.database import Database, DatabaseTransaction
from frazil.catalog.names import Identifier, Namespace, undotted
from frazil.catalog.ownership import TablePlace
from frazil.errors import AlreadyExists, FrazilError
from frazil.format.checks import client_location
from frazil.properties.registry import SERVE_LOCATION
from frazil.storage import Places, Storage, check_absolute, is_local

_OURS = """
SELECT f.table_id, f.catalog_name, f.table_namespace, f.table_name, f.location,
       CASE WHEN d.definition LIKE :folders OR d.definition LIKE :clones
            OR d.definition LIKE :clients THEN d.definition END
FROM frazil_tables f LEFT JOIN frazil_definitions d ON d.table_id = f.table_id
"""
_CLIENTS = f'%"{SERVE_LOCATION.key}"%'
_SHOWN = """
SELECT f.table_namespace, f.table_name, f.location, d.definition
FROM frazil_tables f JOIN frazil_definitions d ON d.table_id = f.table_id
WHERE d.definition LIKE :clients
"""
_THEIRS = """
SELECT t.catalog_name, t.table_namespace, t.table_name, t.metadata_location
FROM iceberg_tables t LEFT JOIN frazil_tables f ON f.catalog_name = t.catalog_name
     AND f.table_namespace = t.table_namespace AND f.table_name = t.table_name
WHERE f.table_id IS NULL AND t.metadata_location IS NOT NULL
"""
_AT = """
SELECT table_namespace, table_name FROM frazil_tables
WHERE location IN (:canonical, :given, :uri, :short) LIMIT 1
"""
_NAMESPACE_AT = """
SELECT property_value FROM iceberg_namespace_properties WHERE property_key = 'location'
"""
_JSON_AT = "SELECT 1 FROM iceberg_tables WHERE metadata_location = :path LIMIT 1"
_BELOW = """
SELECT table_namespace, location FROM frazil_tables WHERE location >= :folder AND location < :until
"""
_JSON_BELOW = """
SELECT table_namespace, metadata_location FROM iceberg_tables
WHERE metadata_location LIKE :folder ESCAPE '!'
"""

Opener = Callable[[str, str, str], Any]
"""Opens the head of a table by catalog, namespace and name; raises when it cannot."""


def canonical(location: str) -> str:
    """A location as the database stores it."""
    return Places().folder(location).rstrip("/")


def taken_by(source: Database | DatabaseTransaction, location: str) -> str | None:
    """The table at a location, however it is spelled."""
    place = canonical(location)
    rows = source.rows(
        _AT,
        {
            "canonical": place,
            "given": location,
            # Rows from before locations were stored in one spelling.
            "uri": f"file://{place}" if is_local(location) else place,
            "short": f"file:{place}" if is_local(location) else place,
        },
    )
    return _name_text(*rows[0]) if rows else None


def client_locations(source: Database) -> Iterator[tuple[str, str, str]]:
    """Tables with a property that says where clients see them: name, location, and where."""
    for namespace, name, location, definition in source.rows(_SHOWN, {"clients": _CLIENTS}):
        exposed = client_location(location, _properties(definition))
        yield _name_text(namespace, name), canonical(location), canonical(exposed)


def is_in_use(source: Database, location: str) -> bool:
    """Whether a table has its files or its metadata file at a location, or a namespace its tables
    around it."""
    if taken_by(source, location) is not None or source.rows(_JSON_AT, {"path": location}):
        return True
    place = Places().folder(location)
    return any(
        place.startswith(Places().folder(str(folder))) for (folder,) in source.rows(_NAMESPACE_AT)
    )


def tables_below(source: Database, folder: str) -> list[tuple[Namespace, str]]:
    """Locations of tables in a folder, by namespace, whatever catalog name they have. Those of
    other writers lie where their metadata file says."""
    plain = f"{canonical(folder)}/"
    key = {"folder": plain, "until": f"{plain[:-1]}0"}  # 0 is what follows a slash
    below = [(undotted(space), str(place)) for space, place in source.rows(_BELOW, key)]
    local = plain.replace("!", "!!").replace("%", "!%").replace("_", "!_")
    for space, path in source.rows(_JSON_BELOW, {"folder": f"%{local}%"}):
        place = str(path).rpartition("/")[0].removesuffix("/metadata")
        below.append((undotted(space), canonical(place)))
    return [entry for entry in dict.fromkeys(below) if f"{entry[1]}/".startswith(plain)]


def need_free(source: Database | DatabaseTransaction, location: str) -> None:
    """Two heads over the same files would overwrite and delete each other's."""
    check_absolute(location)
    owner = taken_by(source, location)
    if owner is not None:
        raise AlreadyExists(f"{location}: is the location of table {owner}")


def places(
    database: Database, *, except_id: int | None, storage: Callable[[str], Storage], open: Opener
) -> list[TablePlace]:
    """Where every table of the database keeps files, whatever catalog name it has."""
    tables: list[TablePlace] = []
    likes = {"folders": '%.path"%', "clones": "%frazil.clone.%", "clients": _CLIENTS}
    for table_id, catalog, namespace, name, location, definition in database.rows(_OURS, likes):
        if table_id == except_id:
            continue
        properties = _properties(definition)
        head = _opener(open, catalog, namespace, name)
        tables.append(TablePlace.of(_name_text(namespace, name), location, properties, open=head))
    for catalog, namespace, name, json_location in database.rows(_THEIRS):
        head = _opener(open, catalog, namespace, name)
        tables.append(_of_others(_name_text(namespace, name), json_location, storage, head))
    return tables


def _name_text(namespace: str, name: str) -> str:
    return str(Identifier(namespace=undotted(namespace), name=name))


def _opener(open: Opener, catalog: str, namespace: str, name: str) -> Callable[[], Any]:
    return lambda: open(catalog, namespace, name)


def _properties(definition: str | None) -> dict[str, Any]:
    if definition is None:
        return {}
    try:
        properties = json.loads(definition).get("properties")
    except (ValueError, AttributeError):
        return {}
    return properties if isinstance(properties, dict) else {}


def _of_others(
    name: str, json_location: str, storage: Callable[[str], Storage], head: Callable[[], Any]
) -> TablePlace:
    """A table or view of other Iceberg writers: what its JSON says, else where its JSON lies."""
    folder = json_location.rpartition("/")[0]
    place = folder.removesuffix("/metadata")
    try:
        metadata, _ = export.read(json_location, storage=storage(json_location))
    except FrazilError:
        return TablePlace.of(name, place, {}, open=head)
    return TablePlace.of(name, metadata.location, metadata.properties, open=head)
