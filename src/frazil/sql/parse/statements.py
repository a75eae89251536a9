"""What a statement says, as values. Expressions and queries stay text: they are `Part`s."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Literal

from frazil.format.metadata.metadata import RefKind
from frazil.parser.cursor import Name
from frazil.parser.tokens import Part
from frazil.rows.merge_clauses import Clause
from frazil.value_classes import field, frozen


@frozen
class Query:
    """SELECT and everything else that only reads and the engine knows."""

    part: Part


@frozen
class Explain:
    """EXPLAIN [ANALYZE] of a query, or of the query that finds the rows of a change."""

    parts: tuple[Part, ...]
    analyze: bool
    prefix: str = ""


@frozen
class Copy:
    """COPY query TO file, or COPY table TO file: `parts` make its query. `file` is a text or a
    parameter, `options` is what follows it."""

    start: int
    parts: tuple[Part, ...]
    file: Part
    options: Part | None
    prefix: str = ""
    between: str = ""


class InsertMode(Enum):
    """What happens to rows that are there."""

    APPEND = "append"
    OVERWRITE = "overwrite"
    OVERWRITE_PARTITIONS = "overwrite partitions"


@frozen
class Insert:
    """INSERT INTO, INSERT OVERWRITE, INSERT … REPLACE WHERE."""

    table: Name
    query: Part
    columns: tuple[Name, ...] | None = None
    mode: InsertMode = InsertMode.APPEND
    fixed: tuple[tuple[Name, Part], ...] = ()
    where: Part | None = None
    by_name: bool = False
    only_defaults: bool = False
    ctes: Part | None = None


@frozen
class Delete:
    """DELETE FROM; with `using`, the tables that the condition looks at, too."""

    table: Name
    alias: str | None
    where: Part | None
    using: Part | None = None
    ctes: Part | None = None


@frozen
class Update:
    """UPDATE … SET; with `source`, UPDATE … SET … FROM."""

    table: Name
    alias: str | None
    assignments: tuple[tuple[Name, Part], ...]
    source: Part | None
    where: Part | None
    ctes: Part | None = None


class Takes(Enum):
    """How a clause of MERGE without values finds its columns in the source."""

    ALL = "*"
    BY_NAME = "BY NAME"
    BY_POSITION = "BY POSITION"
    DEFAULTS = "DEFAULT VALUES"


@frozen
class Written:
    """What a clause of MERGE writes; an insert without `columns` fills all of them. Without
    `values`, those of the source's columns."""

    start: int
    columns: tuple[Name, ...] | None = None
    values: tuple[Part, ...] | None = None
    takes: Takes = Takes.ALL


MergeClause = Clause[Part, Written]
"""One WHEN. To do nothing is to keep the row."""


@frozen
class Merge:
    """MERGE INTO. `source` is a table name or a query in brackets; `on` is a condition, or the
    columns that both have."""

    table: Name
    alias: str | None
    source: Part
    source_alias: str | None
    on: Part | tuple[Name, ...]
    clauses: tuple[MergeClause, ...]
    ctes: Part | None = None


@frozen
class ColumnDefinition:
    """A column of CREATE TABLE or ADD COLUMN."""

    name: Name
    type: str
    required: bool = False
    doc: str | None = None
    default: Part | None = None
    is_key: bool = False
    first: bool = False
    after: str | None = None


@frozen
class CreateTable:
    """CREATE [OR REPLACE] TABLE [LIKE | AS]."""

    table: Name
    or_replace: bool = False
    if_not_exists: bool = False
    columns: tuple[ColumnDefinition, ...] = ()
    names: tuple[Name, ...] = ()
    """What the columns of the query are called."""
    keys: tuple[str, ...] = ()
    like: Name | None = None
    query: Part | None = None
    partition_by: tuple[str, ...] | None = None
    order_by: tuple[str, ...] | None = None
    expressions: tuple[str, ...] = ()
    location: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    starts: Mapping[str, int] = field(default_factory=dict)
    """Where the clauses of `partition_by` and `order_by` are."""


@frozen
class Drop:
    """DROP TABLE, VIEW, or NAMESPACE and its other words."""

    kind: Literal["table", "view", "namespace"]
    name: Name
    if_exists: bool
    purge: bool = False


@frozen
class CreateView:
    """CREATE [OR REPLACE] VIEW."""

    view: Name
    query: Part
    columns: tuple[tuple[str, str | None], ...] = ()
    or_replace: bool = False
    if_not_exists: bool = False
    must_exist: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)


@frozen
class CreateNamespace:
    """CREATE SCHEMA, DATABASE or NAMESPACE."""

    namespace: Name
    if_not_exists: bool
    properties: Mapping[str, str] = field(default_factory=dict)


# What ALTER TABLE does


@frozen
class AddColumns:
    """ADD COLUMN."""

    columns: tuple[ColumnDefinition, ...]
    if_not_exists: bool = False


@frozen
class DropColumns:
    """DROP COLUMN."""

    columns: tuple[Name, ...]
    if_exists: bool = False


@frozen
class RenameColumn:
    """RENAME COLUMN a TO b."""

    column: Name
    to: str


@frozen
class AlterColumn:
    """ALTER COLUMN: one change."""

    column: Name
    type: str | None = None
    required: bool | None = None
    doc: str | None = None
    default: Part | None = None
    drop_default: bool = False
    first: bool = False
    after: str | None = None


@frozen
class PartitionField:
    """ADD, DROP or REPLACE PARTITION FIELD."""

    add: str | None = None
    name: str | None = None
    drop: str | None = None


@frozen
class SetProperties:
    """SET or UNSET TBLPROPERTIES."""

    updates: Mapping[str, str] = field(default_factory=dict)
    removals: tuple[str, ...] = ()


@frozen
class WriteOrder:
    """WRITE ORDERED BY; no terms: WRITE UNORDERED. `mode` is how rows are brought together
    before, where the statement says so."""

    terms: tuple[str, ...]
    mode: str | None = None


@frozen
class SetExpressions:
    """SET or UNSET EXPRESSIONS."""

    terms: tuple[str, ...]


@frozen
class IdentifierFields:
    """SET or DROP IDENTIFIER FIELDS."""

    columns: tuple[str, ...]
    drop: bool = False


@frozen
class CreateRef:
    """CREATE or REPLACE BRANCH or TAG."""

    name: str
    kind: RefKind
    create: bool = True
    replace: bool = False
    if_not_exists: bool = False
    snapshot_id: int | None = None
    max_ref_age_ms: int | None = None
    min_snapshots: int | None = None
    max_snapshot_age_ms: int | None = None


@frozen
class DropRef:
    """DROP BRANCH or TAG."""

    name: str
    kind: RefKind
    if_exists: bool


@frozen
class RenameTable:
    """RENAME TO."""

    to: Name


Alteration = (
    AddColumns
    | DropColumns
    | RenameColumn
    | AlterColumn
    | PartitionField
    | SetProperties
    | WriteOrder
    | IdentifierFields
    | SetExpressions
    | CreateRef
    | DropRef
    | RenameTable
)


@frozen
class AlterTable:
    """ALTER TABLE: one alteration, at `start`. With `has_column`, the name is a table's and a
    column's together, which only the catalog can tell apart."""

    table: Name
    start: int
    does: Alteration
    if_exists: bool = False
    has_column: bool = False


@frozen
class AlterView:
    """ALTER VIEW … RENAME TO, or SET TBLPROPERTIES."""

    view: Name
    does: RenameTable | SetProperties


@frozen
class AlterNamespace:
    """ALTER NAMESPACE … SET or UNSET PROPERTIES."""

    namespace: Name
    does: SetProperties


@frozen
class Show:
    """SHOW; `what` is one of the words the grammar lists."""

    what: str
    of: Name | None = None
    like: str | None = None
    key: str | None = None


@frozen
class Describe:
    """DESCRIBE a table, its history, a query, or a namespace."""

    table: Name | None = None
    namespace: Name | None = None
    query: Part | None = None
    extended: bool = False
    history: bool = False


@frozen
class Call:
    """CALL system.procedure(…)."""

    procedure: Name
    positional: tuple[Part, ...] = ()
    named: tuple[tuple[Name, Part], ...] = ()


@frozen
class Use:
    """USE namespace."""

    namespace: Name


@frozen
class TransactionStatement:
    """BEGIN, COMMIT or ROLLBACK, at `start`."""

    verb: Literal["BEGIN", "COMMIT", "ROLLBACK"]
    start: int


Statement = (
    Query
    | Explain
    | Copy
    | Insert
    | Delete
    | Update
    | Merge
    | CreateTable
    | CreateView
    | CreateNamespace
    | Drop
    | AlterTable
    | AlterView
    | AlterNamespace
    | Show
    | Describe
    | Call
    | Use
    | TransactionStatement
)
