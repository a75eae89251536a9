"""Namespaces in `iceberg_namespace_properties`, with the rules PyIceberg and Iceberg JDBC share.

A namespace has at least one property row; `exists` = `true` stands for none. It also exists while
a table or another namespace lies below it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from frazil.catalog.backend import NamespaceName
from frazil.catalog.database.database import Database, DatabaseTransaction, DuplicateKey
from frazil.catalog.names import Namespace, dotted, namespace_of, undotted
from frazil.errors import AlreadyExists, InvalidInput, NotFound
from frazil.format.checks import check_properties

_MARK = {"exists": "true"}
_MAX_VALUE = 1000
_ADD = """
INSERT INTO iceberg_namespace_properties (catalog_name, namespace, property_key, property_value)
VALUES (:catalog, :namespace, :key, :value)
"""
_CLEAR = """
DELETE FROM iceberg_namespace_properties WHERE catalog_name = :catalog AND namespace = :namespace
"""
_READ = """
SELECT property_key, property_value FROM iceberg_namespace_properties
WHERE catalog_name = :catalog AND namespace = :namespace ORDER BY property_key
"""
_ALL = """
SELECT namespace FROM iceberg_namespace_properties WHERE catalog_name = :catalog
UNION SELECT table_namespace FROM iceberg_tables WHERE catalog_name = :catalog
"""
_BELOW = """
SELECT namespace FROM iceberg_namespace_properties
WHERE catalog_name = :catalog AND namespace LIKE :below ESCAPE '!'
UNION ALL SELECT table_namespace FROM iceberg_tables
WHERE catalog_name = :catalog AND (table_namespace = :namespace
                                   OR table_namespace LIKE :below ESCAPE '!')
LIMIT 1
"""


class SqlNamespaces:
    """The namespaces of one catalog name."""

    def __init__(self, database: Database, catalog: str) -> None:
        self._database = database
        self._catalog = catalog

    def exists(self, namespace: NamespaceName) -> bool:
        return self.exists_in(self._database, namespace_of(namespace))

    def exists_in(self, source: Database | DatabaseTransaction, namespace: Namespace) -> bool:
        """Whether it exists for a transaction that is open."""
        return bool(source.rows(_READ, self._key(namespace))) or self._holds(source, namespace)

    def create(self, namespace: NamespaceName, properties: Mapping[str, str] | None = None) -> None:
        namespace, properties = namespace_of(namespace), properties or {}
        _check(properties)
        taken = AlreadyExists(f"namespace {dotted(namespace)} already exists")
        try:
            with self._database.changing(
                f"namespace {dotted(namespace)} was being created"
            ) as transaction:
                if self.exists_in(transaction, namespace):
                    raise taken
                self._add(transaction, namespace, properties or _MARK)
        except DuplicateKey:
            raise taken from None

    def children(self, parent: NamespaceName = ()) -> list[Namespace]:
        parent = namespace_of(parent) if parent else ()
        if parent and not self.exists_in(self._database, parent):
            raise NotFound(f"namespace {dotted(parent)} does not exist")
        rows = self._database.rows(_ALL, {"catalog": self._catalog})
        depth = len(parent) + 1
        paths = (undotted(str(name)) for (name,) in rows)
        below = {p[:depth] for p in paths if len(p) >= depth and p[: depth - 1] == parent}
        return sorted(below)

    def properties(self, namespace: NamespaceName) -> dict[str, str]:
        """Its properties, without the mark that only keeps it in being."""
        namespace = namespace_of(namespace)
        rows = self._database.rows(_READ, self._key(namespace))
        if not rows and not self._holds(self._database, namespace):
            raise NotFound(f"namespace {dotted(namespace)} does not exist")
        return {key: value for key, value in rows if {key: value} != _MARK}

    def set_properties(
        self, namespace: NamespaceName, updates: Mapping[str, str], *, removals: Iterable[str] = ()
    ) -> None:
        namespace = namespace_of(namespace)
        _check(updates)
        removed = set(removals)
        with self._changing(namespace, "changed") as transaction:
            rows = transaction.rows(_READ, self._key(namespace))
            properties = {
                key: value for key, value in rows if key not in removed and {key: value} != _MARK
            }
            transaction.run(_CLEAR, self._key(namespace))
            self._add(transaction, namespace, {**properties, **updates} or _MARK)

    def drop(self, namespace: NamespaceName) -> None:
        namespace = namespace_of(namespace)
        with self._changing(namespace, "dropped") as transaction:
            if self._holds(transaction, namespace):
                raise InvalidInput(f"namespace {dotted(namespace)} is not empty")
            transaction.run(_CLEAR, self._key(namespace))

    @contextmanager
    def _changing(self, namespace: Namespace, what: str) -> Iterator[DatabaseTransaction]:
        """A transaction that changes a namespace, which must exist."""
        with self._database.changing(f"namespace {dotted(namespace)} was being {what}") as tx:
            if not self.exists_in(tx, namespace):
                raise NotFound(f"namespace {dotted(namespace)} does not exist")
            yield tx

    def _holds(self, source: Database | DatabaseTransaction, namespace: Namespace) -> bool:
        name = dotted(namespace)
        below = name.replace("!", "!!").replace("_", "!_").replace("%", "!%") + ".%"
        return bool(source.rows(_BELOW, {**self._key(namespace), "below": below}))

    def _add(
        self, transaction: DatabaseTransaction, namespace: Namespace, properties: Mapping[str, str]
    ) -> None:
        key = self._key(namespace)
        transaction.run_each(
            _ADD, [{**key, "key": name, "value": value} for name, value in properties.items()]
        )

    def _key(self, namespace: Namespace) -> dict[str, str]:
        return {"catalog": self._catalog, "namespace": dotted(namespace)}


def _check(properties: Mapping[str, str]) -> None:
    check_properties(properties)
    for key, value in properties.items():
        if len(key) > 255 or len(value) > _MAX_VALUE:
            raise InvalidInput(f"namespace property {key[:40]!r} is too long to be stored")
