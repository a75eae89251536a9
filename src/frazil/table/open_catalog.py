"""`connect`: from the address of a warehouse, a database or a server to its catalog."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import overload

from frazil.argument_checks import checked
from frazil.catalog.backend import CatalogBackend
from frazil.catalog.lazy_catalog import LazyCatalog
from frazil.catalog.storages import Storages
from frazil.errors import InvalidInput, NotFound, StorageError
from frazil.format.checks import check_text, check_texts
from frazil.storage import checked_location, is_local, local_path
from frazil.table.catalog import Catalog
from frazil.text_format import did_you_mean


@overload
def connect(
    uri: str | os.PathLike[str] = "warehouse",
    *,
    warehouse: str | os.PathLike[str] | None = None,
    name: str = "default",
    token: str | None = None,
    **properties: str,
) -> Catalog: ...
@overload
def connect(
    uri: str | os.PathLike[str] = "warehouse",
    *,
    warehouse: str | os.PathLike[str] | None = None,
    name: str = "default",
    token: str | None = None,
    create: bool,
    **properties: str,
) -> Catalog: ...
@overload
def connect(
    uri: str | os.PathLike[str] = "warehouse",
    *,
    warehouse: str | os.PathLike[str] | None = None,
    name: str = "default",
    token: str | None = None,
    create: bool = False,
    read_only: bool,
    **properties: str,
) -> Catalog: ...
@checked  # type: ignore[misc]  # a property may be called create for a type checker
def connect(
    uri: str | os.PathLike[str] = "warehouse",
    *,
    warehouse: str | os.PathLike[str] | None = None,
    name: str = "default",
    token: str | None = None,
    create: bool = False,
    read_only: bool = False,
    **properties: str,
) -> Catalog:
    """Open a catalog.

    A path is an embedded warehouse: a folder with the tables and a SQLite database. If it does
    not exist yet, it is created with the first table, or at once with `create=True`. A URI
    (`postgresql://…`, `sqlite:///…`) names a database; `warehouse` is then the default location of
    tables. An address in a bucket (`s3://bucket/warehouse`, `gs://…`, `abfss://…`) is a catalog
    without a database, kept in the bucket itself; `read_only` opens it without the right to write.
    `http://host:8181` is a catalog that `frazil serve` shares; if it asks for a token, give
    `token` or set FRAZIL_TOKEN. Other properties configure storage and have PyIceberg's names:
    `**{"s3.endpoint": …}`.

    >>> catalog = connect("warehouse")                                    # doctest: +SKIP
    """
    from frazil.catalog.database.database import Database
    from frazil.catalog.sql.sql_catalog import SqlCatalog

    text = _address(uri)
    check_text(name, "the name of the catalog", empty=False)
    _check_options(properties)
    if _is_server(text):
        if read_only:
            raise InvalidInput("read_only is for a catalog in a bucket; a server has its rights")
        return _served(text, name, warehouse, token, properties)
    if token is not None:
        raise InvalidInput("token is for a server; a folder, a bucket or a database takes none")
    if is_bucket(text):
        return _in_bucket(text, name, warehouse, properties, create=create, read_only=read_only)
    if read_only:
        raise InvalidInput("read_only is for a catalog in a bucket, as in s3://bucket/warehouse")
    place = None if warehouse is None else _warehouse(warehouse)
    pointers: CatalogBackend
    if _is_database(text):
        database = Database(_driver(text))
        pointers = SqlCatalog(database, name=name, warehouse=place, properties=properties)
    elif not is_local(text):
        raise InvalidInput(
            f"{_scheme(text)} is neither a folder, a bucket (s3:, gs:, abfss:) nor a database "
            "that can be used; for tables on other storage give a database and the warehouse: "
            "connect('sqlite:///catalog.db', warehouse='hdfs://…')"
        )
    else:
        folder = _folder(text)
        pointers = _embedded(folder, place, name, properties, create=create)
    origin = {"uri": text if _is_database(text) else str(folder), "name": name, **properties}
    if warehouse is not None and place is not None:
        origin["warehouse"] = place
    return Catalog(pointers, properties, origin=origin)


def is_bucket(text: str) -> bool:
    """Whether an address is one in a bucket."""
    scheme, mark, _ = text.partition("://")
    if not mark:
        return False
    from frazil.storage.store_settings import KINDS

    return scheme.lower() in KINDS


def _in_bucket(
    address: str,
    name: str,
    warehouse: object,
    properties: Mapping[str, str],
    *,
    create: bool,
    read_only: bool,
) -> Catalog:
    """The catalog in a bucket; the first definition creates it."""
    from frazil.catalog.objects.object_catalog import ObjectCatalog

    if warehouse is not None:
        raise InvalidInput("warehouse is the address itself for a catalog in a bucket")
    place = checked_location(address, what="the catalog's address")
    backend = ObjectCatalog(place, name=name, properties=properties, read_only=read_only)
    if create:
        backend.marker.ensure()
    origin = {"uri": place, "name": name, **properties}
    return Catalog(backend, properties, origin=origin)


def _served(
    address: str, name: str, warehouse: object, token: str | None, properties: Mapping[str, str]
) -> Catalog:
    """The catalog behind a server; its token is not part of what opens it elsewhere."""
    from frazil.catalog.remote.remote_catalog import RemoteCatalog
    from frazil.catalog.remote.remote_http import TOKEN_VARIABLE

    if warehouse is not None:
        raise InvalidInput("warehouse is the server's own; start frazil serve with it")
    token = token or os.environ.get(TOKEN_VARIABLE) or None
    pointers = RemoteCatalog(address, token=token, properties=properties)
    if name not in ("default", pointers.name):
        raise InvalidInput(f"{address} serves catalog {pointers.name!r}, not {name!r}")
    return Catalog(pointers, properties, origin={"uri": address, "name": name, **properties})


def _embedded(
    folder: Path, place: str | None, name: str, properties: Mapping[str, str], *, create: bool
) -> CatalogBackend:
    """The catalog of a folder; one that does not exist is left to the first table."""
    from frazil.catalog.database.database import Database
    from frazil.catalog.sql.sql_catalog import SqlCatalog

    place = place or f"file://{folder}"

    def make() -> CatalogBackend:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(
                f"{folder}: cannot be a warehouse: {error.strerror or error}"
            ) from error
        database = Database.at_path(f"{folder}/catalog.db")
        return SqlCatalog(database, name=name, warehouse=place, properties=properties)

    try:
        is_made = create or os.path.lexists(folder / "catalog.db") or not _is_free(folder)
    except OSError:  # a name that no folder can have
        is_made = True
    if is_made:
        return make()
    return LazyCatalog(folder, make, name=name, warehouse=place, storage=Storages(properties))


def _is_free(folder: Path) -> bool:
    """Whether a warehouse could be created here later; if not, trying says why."""
    existing = folder
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    return existing.is_dir() and os.access(existing, os.R_OK | os.W_OK | os.X_OK)


def _check_options(properties: Mapping[str, str]) -> None:
    """Properties have dots or hyphens in their names; any other name is a mistake."""
    for name in properties:
        if "." not in name and "-" not in name:
            hint = did_you_mean(name, ("uri", "warehouse", "name", "create", "token", "read_only"))
            raise InvalidInput(f"connect has no option {name!r}{hint}")
    check_texts(properties, "connection property")


def connect_existing(uri: str | os.PathLike[str], **options: str) -> Catalog:
    """Open a catalog as `connect` does, but make none: NotFound when a folder holds none."""
    text = _address(uri)
    if not _is_database(text) and not _is_server(text) and is_local(text):
        folder = _folder(text)
        if not (folder / "catalog.db").is_file():
            raise NotFound(f"{folder}: no warehouse is there; give its full path, or make it first")
    if is_bucket(text):
        catalog = connect(text, **options)
        if not catalog._pointers.marker.exists:  # type: ignore[attr-defined]
            raise NotFound(f"{text}: no catalog is there; create a table, or correct the address")
        return catalog
    return connect(text, **options)


def _address(uri: object) -> str:
    text = os.fspath(uri) if isinstance(uri, os.PathLike) else uri
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        raise InvalidInput("the catalog's address is not text; expected a folder or a database URI")
    check_text(text, "the catalog's address")
    return text


def _folder(text: str) -> Path:
    try:
        return Path(local_path(text)).expanduser().resolve()
    except (OSError, RuntimeError) as error:
        raise InvalidInput(f"{text}: {error}") from error


def _warehouse(warehouse: object) -> str:
    """Where tables go, as it is stored; `~` is the home of the user."""
    if isinstance(warehouse, str | os.PathLike) and str(warehouse).startswith("~"):
        warehouse = _folder(str(warehouse))
    place = checked_location(warehouse, what="warehouse")
    return f"file://{place}" if place.startswith("/") else place


def _scheme(text: str) -> str:
    """An address without what may be secret in it."""
    return f"{text.partition(':')[0]}:…"


def _is_database(text: str) -> bool:
    return re.match(r"(postgresql|postgres|sqlite)(\+\w+)?:", text) is not None


def _is_server(text: str) -> bool:
    return re.match(r"https?://", text) is not None


def _driver(text: str) -> str:
    """PostgreSQL through psycopg, whatever the URI was written for."""
    scheme, _, rest = text.partition("://")
    if scheme in ("postgresql", "postgres"):
        return f"postgresql+psycopg://{rest}"
    return text
