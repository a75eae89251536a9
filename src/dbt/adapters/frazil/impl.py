"""The adapter: what dbt asks of a warehouse, answered by a catalog."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from dbt.adapters.base import available
from dbt.adapters.base.impl import ConstraintSupport
from dbt.adapters.capability import Capability, CapabilityDict, CapabilitySupport, Support
from dbt.adapters.contracts.relation import RelationType
from dbt.adapters.sql import SQLAdapter
from dbt_common.contracts.constraints import ConstraintType
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.frazil.column import FrazilColumn
from dbt.adapters.frazil.connections import DATABASE, FrazilConnectionManager, sql_type
from dbt.adapters.frazil.relation import FrazilRelation
from frazil.errors import NotFound
from frazil.filter.text.quotes import quoted
from frazil.filter.text.sql_values import type_text
from frazil.table import Catalog

if TYPE_CHECKING:
    import agate

_CATALOG_COLUMNS = (
    "table_database",
    "table_schema",
    "table_name",
    "table_type",
    "table_comment",
    "table_owner",
    "column_name",
    "column_index",
    "column_type",
    "column_comment",
)


class FrazilAdapter(SQLAdapter):
    """dbt on the tables and views of a Frazil catalog."""

    ConnectionManager = FrazilConnectionManager
    Relation = FrazilRelation
    Column = FrazilColumn
    CONSTRAINT_SUPPORT = {
        ConstraintType.check: ConstraintSupport.NOT_SUPPORTED,
        ConstraintType.not_null: ConstraintSupport.ENFORCED,
        ConstraintType.unique: ConstraintSupport.NOT_SUPPORTED,
        ConstraintType.primary_key: ConstraintSupport.NOT_ENFORCED,
        ConstraintType.foreign_key: ConstraintSupport.NOT_SUPPORTED,
    }
    _capabilities = CapabilityDict(
        {
            Capability.SchemaMetadataByRelations: CapabilitySupport(support=Support.Full),
            Capability.MicrobatchConcurrency: CapabilitySupport(support=Support.Full),
        }
    )

    @property
    def frazil_catalog(self) -> Catalog:
        """The catalog of this thread's connection."""
        catalog: Catalog = self.connections.get_thread_connection().handle.catalog
        return catalog

    # Types of seeds

    @classmethod
    def date_function(cls) -> str:
        return "now()"

    @classmethod
    def is_cancelable(cls) -> bool:
        return False

    @classmethod
    def quote(cls, identifier: str | None) -> str:
        return quoted(str(identifier))  # dbt quotes the database, which is none, for texts of tests

    @classmethod
    def convert_text_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        return "VARCHAR"

    @classmethod
    def convert_number_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        import agate

        return "DOUBLE" if agate_table.aggregate(agate.MaxPrecision(col_idx)) else "BIGINT"

    @classmethod
    def convert_integer_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        return "BIGINT"

    @classmethod
    def convert_datetime_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        return "TIMESTAMP"

    @available
    def write_seed(self, relation: FrazilRelation, table: agate.Table, types: list[str]) -> None:
        """Replace the rows of a table by those of a seed, in one commit."""
        rows = pa.table(
            {
                name: pa.array([_text(row[at]) for row in table.rows], pa.string())
                for at, name in enumerate(table.column_names)
            }
        )
        columns = ", ".join(
            f"CAST({quoted(name)} AS {kind}) AS {quoted(name)}"
            for name, kind in zip(table.column_names, types, strict=True)
        )
        text = f"INSERT OVERWRITE {relation.render()} SELECT {columns} FROM dbt_seed"
        with self.connections.exception_handler(text):
            session = self.connections.get_thread_connection().handle.session
            session.sql(text, tables={"dbt_seed": rows})

    # Schemas

    def list_schemas(self, database: str | None) -> list[str]:
        schemas, waiting = [], self.frazil_catalog.list_namespaces()
        while waiting:
            name = waiting.pop()
            schemas.append(name)
            waiting += self.frazil_catalog.list_namespaces(name)
        return sorted(schemas)

    @available
    def check_schema_exists(self, database: str | None, schema: str) -> bool:
        return schema in self.list_schemas(database)

    def create_schema(self, relation: FrazilRelation) -> None:
        parts = str(relation.schema).split(".")
        for end in range(1, len(parts) + 1):
            self.frazil_catalog.create_namespace(".".join(parts[:end]), if_not_exists=True)

    def drop_schema(self, relation: FrazilRelation) -> None:
        for held in self.list_relations_without_caching(relation):
            self.drop_relation(held)
        if self.check_schema_exists(None, str(relation.schema)):
            self.frazil_catalog.drop_namespace(str(relation.schema))
        self.cache.drop_schema(relation.database, relation.schema)

    # Tables and views

    def list_relations_without_caching(
        self, schema_relation: FrazilRelation
    ) -> list[FrazilRelation]:
        schema = str(schema_relation.schema)
        try:
            named = [
                *((name, RelationType.Table) for name in self.frazil_catalog.list_tables(schema)),
                *((name, RelationType.View) for name in self.frazil_catalog.list_views(schema)),
            ]
        except NotFound:
            return []
        return [
            self.Relation.create(
                database=schema_relation.database,
                schema=schema,
                identifier=name.removeprefix(f"{schema}."),
                type=kind,
            )
            for name, kind in named
        ]

    def get_columns_in_relation(self, relation: FrazilRelation) -> list[FrazilColumn]:
        text = f"SELECT * FROM {relation.render()} LIMIT 0"
        with self.connections.exception_handler(text):
            session = self.connections.get_thread_connection().handle.session
            try:
                columns = session.sql(text).schema
            except NotFound:  # dbt compiles texts that ask for columns before the table is built
                return []
        return [self.Column(column=f.name, dtype=sql_type(f.type)) for f in columns]

    def drop_relation(self, relation: FrazilRelation) -> None:
        self.cache_dropped(relation)
        kind = "VIEW" if relation.is_view else "TABLE"
        self.execute(f"DROP {kind} IF EXISTS {relation.main.render()}")

    def truncate_relation(self, relation: FrazilRelation) -> None:
        self.execute(f"TRUNCATE TABLE {relation.render()}")

    def rename_relation(self, from_relation: FrazilRelation, to_relation: FrazilRelation) -> None:
        self.cache_renamed(from_relation, to_relation)
        kind = "VIEW" if from_relation.is_view else "TABLE"
        old, new = from_relation.main.render(), to_relation.main.render()
        self.execute(f"ALTER {kind} {old} RENAME TO {new}")

    def expand_column_types(self, goal: FrazilRelation, current: FrazilRelation) -> None:
        """Text has no length."""

    @available
    def ensure_branch(self, relation: FrazilRelation, sql: str) -> None:
        """Create the branch that a relation names, at the current state of its table. A table
        without a snapshot has nothing to start at: there the rows of `sql` begin the branch."""
        table = self.frazil_catalog.load_table(f"{relation.schema}.{relation.identifier}")
        with self.connections.exception_handler(sql):
            branch = table.branch(str(relation.branch), create=True)
            if not self.has_branch(relation):
                session = self.connections.get_thread_connection().handle.session
                branch.append(session.sql(sql).to_arrow())
        if not self.has_branch(relation):
            raise DbtRuntimeError(
                f"{relation.render()}: a branch of a new table begins with its first rows, and the "
                "model has none. Build it without `branch` first."
            )

    @available
    def has_branch(self, relation: FrazilRelation) -> bool:
        """Whether the table has the branch that a relation names."""
        table = self.frazil_catalog.find_table(f"{relation.schema}.{relation.identifier}")
        return table is not None and relation.branch in table.metadata.refs

    @available
    def partition_columns(self, terms: list[str]) -> list[str]:
        """The columns that partition terms are made of, as `INSERT OVERWRITE` names them."""
        inner = (term.partition("(")[2].rpartition(")")[0] or term for term in terms)
        return [part.split(",")[-1].strip() for part in inner]

    def valid_incremental_strategies(self) -> list[str]:
        return ["append", "merge", "delete+insert", "insert_overwrite", "microbatch"]

    # Documentation

    def _held_in(self, schema: str) -> list[FrazilRelation]:
        return self.list_relations_without_caching(
            self.Relation.create(database=DATABASE, schema=schema)
        )

    def _get_one_catalog(
        self, information_schema: Any, schemas: Iterable[str], used_schemas: Any
    ) -> agate.Table:
        held = [relation for schema in sorted(schemas) for relation in self._held_in(schema)]
        return self._described(held, used_schemas)

    def _get_one_catalog_by_relations(
        self, information_schema: Any, relations: Iterable[FrazilRelation], used_schemas: Any
    ) -> agate.Table:
        names = {(relation.schema, relation.identifier) for relation in relations}
        held = [
            relation
            for schema in sorted({str(schema) for schema, _ in names})
            for relation in self._held_in(schema)
            if (relation.schema, relation.identifier) in names
        ]
        return self._described(held, used_schemas)

    def _described(self, relations: list[FrazilRelation], used_schemas: Any) -> agate.Table:
        import agate

        rows = [row for relation in relations for row in self._described_columns(relation)]
        types = [agate.Number() if "index" in c else agate.Text() for c in _CATALOG_COLUMNS]
        table = agate.Table(rows, column_names=_CATALOG_COLUMNS, column_types=types)
        return self._catalog_filter_table(table, used_schemas)

    def _described_columns(self, relation: FrazilRelation) -> list[tuple[Any, ...]]:
        name = f"{relation.schema}.{relation.identifier}"
        if relation.is_view:
            stored = self.frazil_catalog._pointers.views.load(name).metadata
            comment = dict(stored.get("properties", {})).get("comment")
            docs = {
                part["name"]: part.get("doc")
                for schema in stored.get("schemas", ())
                for part in schema.get("fields", ())
            }
            columns = [
                (c.name, c.dtype, docs.get(c.name)) for c in self.get_columns_in_relation(relation)
            ]
        else:
            table = self.frazil_catalog.load_table(name)
            comment = table.properties.get("comment")
            columns = [
                (f.name, type_text(f.field_type), f.doc) for f in table.metadata.schema().fields
            ]
        kind = "view" if relation.is_view else "table"
        at = (DATABASE, relation.schema, relation.identifier, kind, comment, None)
        return [
            (*at, column, index, type_name, doc)
            for index, (column, type_name, doc) in enumerate(columns, start=1)
        ]


def _text(value: Any) -> str | None:
    """A value of a seed as text that SQL can cast."""
    if value is None:
        return None
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
