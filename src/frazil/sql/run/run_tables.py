"""CREATE, DROP and ALTER of tables and namespaces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from frazil.catalog.names import dotted, undotted
from frazil.commit.updates import SetRef
from frazil.data.schema import iceberg_schema
from frazil.data.write.row_input import refuse_untyped
from frazil.errors import AlreadyExists, FrazilError, InvalidInput, NotFound
from frazil.filter.text.partition_by import parse_partition_by, parse_sort_order
from frazil.filter.text.type_text import parse_type
from frazil.format.metadata.metadata import SnapshotRef
from frazil.iceberg.partitioning import PartitionSpec
from frazil.iceberg.schema import Schema, freshly_numbered
from frazil.iceberg.types import (
    IcebergType,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StructType,
    TimestampNanoType,
    TimestamptzNanoType,
)
from frazil.parser.cursor import Name
from frazil.parser.tokens import Part
from frazil.properties.registry import DISTRIBUTION_MODE
from frazil.sql.name_resolution import repeated_name
from frazil.sql.output.query_result import Result, one_row
from frazil.sql.parse import statements as st
from frazil.table.columns.column_tree import default_of
from frazil.table.columns.evolve import EvolveSchema, sort_order_update
from frazil.table.table import Table
from frazil.table.transaction import Transaction
from frazil.text_format import counted
from frazil.value_classes import replace

if TYPE_CHECKING:
    from frazil.iceberg.sorting import SortOrder
    from frazil.sql.run.execution import Execution

_WITHOUT_DEFAULT: Final = (TimestampNanoType, TimestamptzNanoType)


def run(statement: Any, at: Execution) -> Result:
    """Carry out a statement."""
    match statement:
        case st.CreateTable():
            return _create(statement, at)
        case st.Drop():
            return _drop(statement, at)
        case st.AlterTable():
            return _alter(statement, at)
        case st.CreateNamespace(namespace=namespace):
            at.transactions.refuse("CREATE NAMESPACE")
            with at.place(namespace.start):
                at.catalog.create_namespace(
                    namespace.parts,
                    dict(statement.properties),
                    if_not_exists=statement.if_not_exists,
                )
            return one_row(created=str(namespace))
        case st.AlterNamespace(namespace=namespace, does=does):
            at.transactions.refuse("ALTER NAMESPACE")
            with at.place(namespace.start):
                at.catalog.set_namespace_properties(
                    namespace.parts, does.updates, remove=does.removals
                )
            return one_row(altered=str(namespace))
    raise AssertionError(statement)


# CREATE TABLE


def _create(statement: st.CreateTable, at: Execution) -> Result:
    at.transactions.refuse("CREATE TABLE")
    name = statement.table
    with at.place(name.start):
        full = at.names.full(name.parts)
        exists = at.catalog.table_exists(full)
        if exists and statement.if_not_exists:
            return one_row(created=None)
        if exists and not statement.or_replace:
            raise AlreadyExists(f"table {full} already exists")
        if not exists and at.catalog._pointers.views.exists(full):
            raise AlreadyExists(f"{full} is a view")
    rows: pa.RecordBatchReader | None = None
    properties = dict(statement.properties)
    spec: PartitionSpec | Sequence[str] = statement.partition_by or ()
    order: SortOrder | Sequence[str] = statement.order_by or ()
    expressions = statement.expressions
    if statement.query is not None:
        rows = _called(at.result(statement.query).to_reader(), statement.names, at)
        with at.place(statement.query.start):
            refuse_untyped(rows.schema)
            if (twice := repeated_name(rows.schema.names)) is not None:
                raise InvalidInput(f"the query has two columns {twice}; give one an alias")
            schema = iceberg_schema(rows.schema)
    elif statement.like is not None:
        with at.place(statement.like.start):
            like = at.names.table(statement.like.parts)
        schema = like.metadata.schema()
        spec = spec or like.metadata.spec()
        order = order or like.metadata.sort_order()
        expressions = expressions or like.expressions
    else:
        schema = _schema(statement, at)
    with at.place(name.start):
        _check_names(schema.fields)
    for clause, parse, terms in (
        ("partition_by", parse_partition_by, statement.partition_by),
        ("order_by", parse_sort_order, statement.order_by),
    ):
        if terms:
            with at.place(statement.starts[clause]):
                parse(list(terms), schema)
    if statement.expressions:
        from frazil.data.statistics.declare import declarations

        with at.place(statement.starts["expressions"]):
            declarations(expressions, schema)
    with at.place(name.start):
        if exists:
            table = at.catalog.load_table(full)._as_loaded()
            count = _replace(table, schema, spec, order, properties, expressions, rows)
        else:
            table = at.catalog.create_table(
                full,
                schema,
                partition_by=spec if isinstance(spec, PartitionSpec) else list(spec),
                sort_by=list(order) if isinstance(order, Sequence) else order,
                location=statement.location,
                properties=properties,
                expressions=expressions,
            )
            count = _fill(at, table, rows)
    return one_row(created=table.name, rows=count)


def _fill(at: Execution, table: Table, rows: pa.RecordBatchReader | None) -> int:
    """Rows of a table just made; it goes again if they cannot be written."""
    if rows is None:
        return 0
    counted = CountedRows(rows)
    try:
        table.append(counted.reader())
    except BaseException:
        at.catalog.drop_table(table.name, purge=True)
        raise
    return counted.rows


def _replace(
    table: Table,
    schema: Schema,
    spec: PartitionSpec | Sequence[str],
    order: SortOrder | Sequence[str],
    properties: dict[str, str],
    expressions: Sequence[str],
    rows: pa.RecordBatchReader | None,
) -> int:
    """Another definition and other rows for a table that exists; its history stays."""
    from frazil.iceberg.partitioning import UNPARTITIONED
    from frazil.iceberg.sorting import UNSORTED
    from frazil.table.replacing import replacing

    if not isinstance(spec, PartitionSpec):
        spec = parse_partition_by(list(spec), schema) if spec else UNPARTITIONED
    if isinstance(order, Sequence):
        order = parse_sort_order(list(order), schema) if order else UNSORTED
    with replacing(
        table, schema, spec=spec, order=order, properties=properties, expressions=expressions
    ) as tx:
        if rows is None:
            return 0
        counted = CountedRows(rows)
        tx.append(counted.reader())
    return counted.rows


class CountedRows:
    """A stream that knows how many rows went by."""

    def __init__(self, rows: pa.RecordBatchReader) -> None:
        self._rows = rows
        self.rows = 0

    def reader(self) -> pa.RecordBatchReader:
        """The stream."""
        return pa.RecordBatchReader.from_batches(self._rows.schema, self._batches())

    def _batches(self) -> Any:
        for batch in self._rows:
            self.rows += batch.num_rows
            yield batch


def _check_names(fields: Iterable[NestedField]) -> None:
    """Refuse columns that SQL could not tell apart: it ignores case."""
    spelling: dict[str, str] = {}
    for field in fields:
        other = spelling.get(field.name.lower())
        if other is not None:
            raise InvalidInput(f"columns {other} and {field.name} differ in case only; rename one")
        spelling[field.name.lower()] = field.name
        _check_names(getattr(field.field_type, "fields", ()))


def _called(
    rows: pa.RecordBatchReader, names: Sequence[Name], at: Execution
) -> pa.RecordBatchReader:
    """Rows whose first columns have other names."""
    if not names:
        return rows
    columns = rows.schema.names
    if len(names) > len(columns):
        raise at.source.problem(
            names[len(columns)].start,
            f"{counted(len(names), 'column')} are named, the query has {len(columns)}",
        )
    called = [*map(str, names), *columns[len(names) :]]
    schema = pa.schema(
        field.with_name(name) for field, name in zip(rows.schema, called, strict=True)
    )
    return pa.RecordBatchReader.from_batches(schema, (b.rename_columns(called) for b in rows))


def _default(part: Part | None, kind: IcebergType | None, at: Execution) -> Any:
    """The value of a default, which is cast to the column's type as a cell of INSERT is. Those of
    types that have no default, and of columns that are not there, are refused later."""
    if part is None:
        return None
    is_cast = isinstance(kind, PrimitiveType) and not isinstance(kind, _WITHOUT_DEFAULT)
    return at.constant(part, kind if is_cast else None)


def _schema(statement: st.CreateTable, at: Execution) -> Schema:
    fields: list[NestedField] = []
    for number, column in enumerate(statement.columns, start=1):
        with at.place(column.name.start):
            if len(column.name.parts) > 1:
                raise InvalidInput(f"column {column.name}: a name has no dots")
            kind = parse_type(column.type)
            default = None
            if column.default is not None:
                default = default_of(_default(column.default, kind, at), kind, str(column.name))
            fields.append(
                NestedField(
                    field_id=number,
                    name=column.name.parts[0],
                    field_type=kind,
                    required=column.required or column.name.parts[0] in statement.keys,
                    doc=column.doc,
                    initial_default=default,
                    write_default=default,
                )
            )
    twice = repeated_name(field.name for field in fields)
    if twice is not None:
        raise at.source.problem(
            statement.table.start, f"two columns are called {twice}: SQL ignores case in names"
        )
    columns = freshly_numbered(Schema(*fields)).fields
    by_name = {column.name: column.field_id for column in columns}
    unknown = [key for key in statement.keys if key not in by_name]
    if unknown:
        raise at.source.problem(
            statement.table.start, f"PRIMARY KEY names {unknown[0]!r}, which is not a column"
        )
    return Schema(*columns, identifier_field_ids=[by_name[key] for key in statement.keys])


# DROP


def _drop(statement: st.Drop, at: Execution) -> Result:
    name, catalog, views = statement.name, at.catalog, at.catalog._pointers.views
    at.transactions.refuse(f"DROP {statement.kind.upper()}")
    with at.place(name.start):
        if statement.kind == "namespace":
            with suppress(*((NotFound,) if statement.if_exists else ())):
                catalog.drop_namespace(name.parts)
            return one_row(dropped=str(name))
        full = at.names.full(name.parts)
        exists = {"table": catalog.table_exists, "view": views.exists}
        if not exists.pop(statement.kind)(full):
            ((other, is_other),) = exists.items()
            if is_other(full):
                raise InvalidInput(f"{full} is a {other}; use DROP {other.upper()}")
            if statement.if_exists:
                return one_row(dropped=None)
        if statement.kind == "table":
            catalog.drop_table(full, purge=statement.purge)
        else:
            views.drop(full)
    return one_row(dropped=full)


# ALTER TABLE


def _alter(statement: st.AlterTable, at: Execution) -> Result:
    if statement.has_column:
        statement = _split(statement, at)
    with at.place(statement.table.start):
        try:
            table = at.names.table(statement.table.parts)
        except NotFound:
            if statement.if_exists:
                return one_row(altered=None)
            raise
    with at.place(statement.start), _in_sql():
        match statement.does:
            case st.RenameTable(to=to):
                at.transactions.refuse("RENAME TO")
                parts = to.parts
                if len(parts) == 1:
                    parts = (*undotted(table.name)[:-1], *parts)
                at.catalog.rename_table(table.name, dotted(parts))
            case st.CreateRef() as ref:
                at.transactions.refuse("CREATE BRANCH or TAG")
                _create_ref(table, ref)
            case st.DropRef() as ref:
                at.transactions.refuse("DROP BRANCH or TAG")
                _drop_ref(table, ref)
            case does:
                with at.writing(table) as tx:
                    _alter_in(tx, does, at)
    return one_row(altered=table.name)


def _split(statement: st.AlterTable, at: Execution) -> st.AlterTable:
    """`shop.orders.address.zip` as a table and a column of it."""
    assert isinstance(statement.does, st.AlterColumn)
    name = statement.table
    for size in range(len(name.parts) - 1, 0, -1):
        try:
            at.names.table(name.parts[:size])
        except FrazilError:
            continue
        table, column = (
            Name(parts, name.start, name.end) for parts in (name.parts[:size], name.parts[size:])
        )
        return replace(statement, table=table, does=replace(statement.does, column=column))
    return replace(statement, table=Name(name.parts[:-1], name.start, name.end))


@contextmanager
def _in_sql() -> Iterator[None]:
    """Advice about Python's arguments, as a user of SQL can follow it."""
    try:
        yield
    except InvalidInput as error:
        advice = "pass allow_incompatible=True if"
        if advice not in str(error):
            raise
        message = str(error).replace(
            advice, "evolve_schema in Python takes allow_incompatible=True if"
        )
        raise InvalidInput(message) from error


def _alter_in(tx: Transaction, does: st.Alteration, at: Execution) -> None:
    match does:
        case st.SetProperties(updates=updates, removals=removals):
            tx.set_properties(dict(updates), remove=removals)
        case st.WriteOrder(terms=terms, mode=mode):
            tx._apply_update(sort_order_update(tx.metadata, terms))
            if mode is not None:
                tx.set_properties({DISTRIBUTION_MODE.key: mode})
        case st.SetExpressions(terms=terms):
            tx.set_expressions(terms)
        case st.PartitionField(add=add, drop=drop, name=name):
            with tx.evolve_partitions() as fields:
                if drop is not None:
                    fields.remove(drop)
                if add is not None:
                    fields.add(add, name)
        case _:
            with tx.evolve_schema() as columns:
                _alter_columns(columns, does, at)
                if isinstance(does, st.AddColumns | st.RenameColumn):
                    _check_names(columns.draft_schema.fields)


def _alter_columns(columns: EvolveSchema, does: st.Alteration, at: Execution) -> None:
    match does:
        case st.AddColumns(columns=added, if_not_exists=if_not_exists):
            for column in added:
                path = _spelled(columns.draft_schema, column.name.parts)
                if if_not_exists and _has(columns, path):
                    continue
                columns.add_column(
                    path,
                    column.type,
                    doc=column.doc,
                    required=column.required,
                    default=_default(column.default, parse_type(column.type), at),
                    first=column.first,
                    after=_spelled_beside(columns.draft_schema, path, column.after),
                )
        case st.DropColumns(columns=dropped, if_exists=if_exists):
            for name in dropped:
                path = _spelled(columns.draft_schema, name.parts)
                if not if_exists or _has(columns, path):
                    columns.drop_column(path)
        case st.RenameColumn(column=column, to=to):
            columns.rename_column(_spelled(columns.draft_schema, column.parts), to)
        case st.AlterColumn():
            _alter_column(columns, does, at)
        case st.IdentifierFields(columns=names, drop=drop):
            now = sorted(columns.draft_schema.identifier_field_names())
            names = tuple(
                ".".join(_spelled(columns.draft_schema, name.split("."))) for name in names
            )
            if not drop:
                columns.set_identifier_fields(*names)
                return
            unknown = [name for name in names if name not in now]
            if unknown:
                raise InvalidInput(f"{unknown[0]!r} is not an identifier field")
            columns.set_identifier_fields(*(name for name in now if name not in names))


def _alter_column(columns: EvolveSchema, does: st.AlterColumn, at: Execution) -> None:
    path = _spelled(columns.draft_schema, does.column.parts)
    if does.first or does.after is not None:
        after = _spelled_beside(columns.draft_schema, path, does.after)
        columns.move(path, first=does.first, after=after)
    elif does.type is not None:
        columns.update_column(path, does.type)
    elif does.required is not None:
        columns.update_column(path, required=does.required)
    elif does.default is not None:
        is_known = _has(columns, path)
        kind = columns.draft_schema.find_field(".".join(path)).field_type if is_known else None
        columns.update_column(path, default=_default(does.default, kind, at))
    elif does.drop_default:
        columns.update_column(path, default=None)
    else:
        columns.update_column(path, doc=does.doc or None)


def _spelled(schema: Schema, parts: Sequence[str]) -> tuple[str, ...]:
    """A path of columns as the table spells them, as far as it has them: SQL ignores case."""
    fields: Sequence[NestedField] = schema.fields
    path: list[str] = []
    for part in parts:
        names = [field.name for field in fields]
        same = [name for name in names if name.lower() == part.lower()]
        path.append(part if part in names or len(same) != 1 else same[0])
        kinds = [field.field_type for field in fields if field.name == path[-1]]
        fields = [field for kind in kinds for field in _inside(kind)]
    return tuple(path)


def _spelled_beside(schema: Schema, path: Sequence[str], after: str | None) -> str | None:
    """A column that another one stands behind, as the table spells it."""
    return None if after is None else _spelled(schema, (*path[:-1], after))[-1]


def _inside(kind: IcebergType) -> Sequence[NestedField]:
    match kind:
        case StructType(fields=fields):
            return fields
        case ListType(element_field=element):
            return (element,)
        case MapType(key_field=key, value_field=value):
            return (key, value)
    return ()


def _has(columns: EvolveSchema, path: tuple[str, ...]) -> bool:
    try:
        columns.draft_schema.find_field(".".join(path))
    except ValueError:
        return False
    return True


# Branches and tags


def _create_ref(table: Table, statement: st.CreateRef) -> None:
    now = table.metadata.refs.get(statement.name)
    kind = statement.kind
    if now is not None and now.kind is not kind:
        raise InvalidInput(f"{statement.name!r} is a {now.kind}, not a {kind}")
    if now is not None and not statement.replace:
        if statement.if_not_exists:
            return
        raise AlreadyExists(f"{table.name}: {kind} {statement.name!r} already exists")
    if now is None and not statement.create:
        raise NotFound(f"{table.name}: {kind} {statement.name!r} does not exist")
    snapshot = (
        table.current_snapshot()
        if statement.snapshot_id is None
        else table.snapshot(statement.snapshot_id)
    )
    if snapshot is None:
        raise InvalidInput(f"{table.name} has no snapshot yet that a {kind} could name")
    base = now if now is not None else SnapshotRef(snapshot_id=snapshot.snapshot_id, kind=kind)
    ref = replace(
        base,
        snapshot_id=snapshot.snapshot_id,
        max_ref_age_ms=statement.max_ref_age_ms or base.max_ref_age_ms,
        min_snapshots_to_keep=statement.min_snapshots or base.min_snapshots_to_keep,
        max_snapshot_age_ms=statement.max_snapshot_age_ms or base.max_snapshot_age_ms,
    )
    expected = None if now is None else int(now.snapshot_id)
    with table.transaction() as tx:
        tx._apply_update(SetRef(name=statement.name, ref=ref, expected=expected))


def _drop_ref(table: Table, statement: st.DropRef) -> None:
    name, kind = statement.name, statement.kind
    ref = table.metadata.refs.get(name)
    if ref is None:
        if statement.if_exists:
            return
        raise NotFound(f"{table.name}: {kind} {name!r} does not exist")
    if ref.kind is not kind:
        raise InvalidInput(f"{name!r} is not a {kind}")
    table.drop_ref(name)
