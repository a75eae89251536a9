"""Which catalog a command works on: the option, the environment, a config file, the default.

Order: `--catalog`, `FRAZIL_CATALOG`, `frazil.toml` here or in `~/.config/frazil` (`config.toml`),
the folder `warehouse`. A name that PyIceberg's configuration (`.pyiceberg.yaml`) knows is taken
from there.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frazil.errors import InvalidInput
from frazil.value_classes import field, frozen

if TYPE_CHECKING:
    from frazil.table import Catalog

DEFAULT = "warehouse"
_PLACES = (Path("frazil.toml"), Path.home() / ".config" / "frazil" / "config.toml")


@frozen
class CatalogSettings:
    """A catalog's address and properties, and where they were found."""

    uri: str
    warehouse: str | None = None
    name: str = "default"
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    source: str = "the command line"

    def open(self, *, create: bool = False) -> Catalog:
        """Connect; with `create`, a warehouse that does not exist is created at once."""
        from frazil.table import connect

        return connect(
            self.uri,
            warehouse=self.warehouse,
            name=self.name,
            create=create,
            **dict(self.properties),
        )


def settings_for(
    catalog: str | None,
) -> CatalogSettings:
    """The settings a command runs with."""
    name = catalog or os.environ.get("FRAZIL_CATALOG")
    if name is not None:
        settings = _from_pyiceberg(name)
        if settings is not None:
            return settings
        source = "--catalog" if catalog else "FRAZIL_CATALOG"
        return CatalogSettings(
            uri=name, warehouse=os.environ.get("FRAZIL_WAREHOUSE"), source=source
        )
    return _from_places()


def quick_settings(catalog: str | None) -> CatalogSettings:
    """As `settings_for`, without asking PyIceberg's configuration, which takes long to load."""
    name = catalog or os.environ.get("FRAZIL_CATALOG")
    return CatalogSettings(uri=name) if name is not None else _from_places()


def _from_places() -> CatalogSettings:
    for path in _PLACES:
        if path.is_file():
            return _from_file(path)
    return CatalogSettings(uri=DEFAULT, source="the default")


def _from_file(path: Path) -> CatalogSettings:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"{path}: {error}") from error
    section = content.get("catalog", {})
    if not isinstance(section, dict) or "uri" not in section:
        raise InvalidInput(f"{path}: expected a section [catalog] with a uri")
    keys = ("uri", "warehouse", "name")
    rest = {key: str(value) for key, value in _flat(section) if key not in keys}
    return CatalogSettings(
        uri=str(section["uri"]),
        warehouse=section.get("warehouse"),
        name=str(section.get("name", "default")),
        properties=rest,
        source=str(path),
    )


def _flat(section: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Keys with dots, which TOML reads as tables inside tables."""
    for key, value in section.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _from_pyiceberg(name: str) -> CatalogSettings | None:
    """A SQL catalog of PyIceberg's configuration; its FileIO properties come along."""
    if "/" in name or ":" in name or "." in name:
        return None
    properties = pyiceberg_properties(name)
    if not properties:
        return None
    kind = str(properties.get("type", "sql"))
    uri = properties.get("uri")
    if kind != "sql" or uri is None:
        raise InvalidInput(
            f"PyIceberg's catalog {name!r} is of type {kind}; only SQL catalogs hold Frazil "
            f"tables. Read its tables with: frazil import {name}:<namespace>.<table>"
        )
    rest = {
        key: str(value)
        for key, value in properties.items()
        if ("." in key or "-" in key) and key != "py-catalog-impl"
    }
    return CatalogSettings(
        uri=str(uri),
        warehouse=properties.get("warehouse"),
        name=name,
        properties=rest,
        source=".pyiceberg.yaml",
    )


def pyiceberg_properties(name: str) -> dict[str, Any]:
    """What PyIceberg's configuration says of a catalog; nothing when it does not know it."""
    from pyiceberg.utils.config import Config

    return dict(Config().get_catalog_config(name) or {})
