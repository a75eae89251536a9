"""Views in a SQL database: one row each in `frazil_views`.

The row a view also has in `iceberg_tables` keeps its name taken; its type is one that PyIceberg's
and Iceberg's own catalogs do not look for, so they neither list nor touch it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from frazil.catalog.backend import (
    ViewName,
    ViewState,
    checked_name,
    name_taken,
    no_view,
    view_moved,
)
from frazil.catalog.database.database import Database, DuplicateKey, Row
from frazil.catalog.names import Identifier, Namespace, dotted, namespace_of
from frazil.catalog.sql.sql_schema import VIEW_TYPE
from frazil.value_classes import replace

_KEY = "catalog_name = :catalog AND view_namespace = :namespace AND view_name = :name"
_TAKE_NAME = f"""
INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location,
       previous_metadata_location, iceberg_type)
VALUES (:catalog, :namespace, :name, NULL, NULL, '{VIEW_TYPE}')
"""
_FREE_NAME = f"""
DELETE FROM iceberg_tables WHERE catalog_name = :catalog AND table_namespace = :namespace
       AND table_name = :name AND iceberg_type = '{VIEW_TYPE}'
"""
_MOVE_NAME = f"""
UPDATE iceberg_tables SET table_namespace = :to_namespace, table_name = :to_name
WHERE catalog_name = :catalog AND table_namespace = :namespace AND table_name = :name
  AND iceberg_type = '{VIEW_TYPE}'
"""
_ADD = """
INSERT INTO frazil_views (catalog_name, view_namespace, view_name, version, metadata)
VALUES (:catalog, :namespace, :name, 0, :metadata)
"""
_LOAD = f"SELECT metadata, version FROM frazil_views WHERE {_KEY}"
_LIST = """
SELECT view_name FROM frazil_views WHERE catalog_name = :catalog AND view_namespace = :namespace
"""
_SWAP = f"""
UPDATE frazil_views SET version = version + 1, metadata = :metadata
WHERE {_KEY} AND version = :version
"""
_MOVE = f"""
UPDATE frazil_views SET view_namespace = :to_namespace, view_name = :to_name WHERE {_KEY}
"""
_DROP = f"DELETE FROM frazil_views WHERE {_KEY}"


class SqlViews:
    """Views in the table `frazil_views`."""

    def __init__(
        self,
        database: Database,
        catalog: str,
        *,
        namespace_exists: Callable[[Namespace], bool],
        prepare: Callable[[], None],
    ) -> None:
        self._database = database
        self._catalog = catalog
        self._namespace_exists = namespace_exists
        self._prepare = prepare

    def create(self, identifier: ViewName, metadata: Mapping[str, Any]) -> ViewState:
        parsed = checked_name(identifier, self._namespace_exists)
        self._prepare()
        key = self._key(parsed)
        try:
            with self._database.changing(f"view {parsed} was being created") as transaction:
                transaction.run(_TAKE_NAME, key)
                transaction.run(_ADD, {**key, "metadata": json.dumps(dict(metadata))})
        except DuplicateKey:
            raise name_taken(parsed) from None
        return ViewState(identifier=parsed, metadata=dict(metadata), version=0)

    def load(self, identifier: ViewName) -> ViewState:
        parsed = Identifier.parse(identifier)
        rows = self._rows(parsed)
        if not rows:
            raise no_view(parsed)
        text, version = rows[0]
        return ViewState(identifier=parsed, metadata=json.loads(text), version=int(version))

    def exists(self, identifier: ViewName) -> bool:
        return bool(self._rows(Identifier.parse(identifier)))

    def list(self, namespace: str | Namespace) -> list[Identifier]:
        parts = namespace_of(namespace)
        key = {"catalog": self._catalog, "namespace": dotted(parts)}
        rows = self._database.rows(_LIST, key)
        return sorted(Identifier(namespace=parts, name=name) for (name,) in rows)

    def replace(self, base: ViewState, metadata: Mapping[str, Any]) -> ViewState:
        key = {**self._key(base.identifier), "version": base.version}
        with self._database.changing(f"view {base.identifier} was being replaced") as transaction:
            rows = transaction.run(_SWAP, {**key, "metadata": json.dumps(dict(metadata))})
        if not rows:
            raise view_moved(base)
        return replace(base, metadata=dict(metadata), version=base.version + 1)

    def rename(self, identifier: ViewName, to: ViewName) -> None:
        old, new = Identifier.parse(identifier), checked_name(to, self._namespace_exists)
        target = {"to_namespace": dotted(new.namespace), "to_name": new.name}
        try:
            with self._database.changing(f"view {old} was being renamed") as transaction:
                if not transaction.run(_MOVE, {**self._key(old), **target}):
                    raise no_view(old)
                transaction.run(_MOVE_NAME, {**self._key(old), **target})
        except DuplicateKey:
            raise name_taken(new) from None

    def drop(self, identifier: ViewName) -> None:
        parsed = Identifier.parse(identifier)
        with self._database.changing(f"view {parsed} was being dropped") as transaction:
            if not transaction.run(_DROP, self._key(parsed)):
                raise no_view(parsed)
            transaction.run(_FREE_NAME, self._key(parsed))

    def _rows(self, identifier: Identifier) -> Sequence[Row]:
        return self._database.rows(_LOAD, self._key(identifier))

    def _key(self, identifier: Identifier) -> dict[str, str]:
        return {
            "catalog": self._catalog,
            "namespace": dotted(identifier.namespace),
            "name": identifier.name,
        }
