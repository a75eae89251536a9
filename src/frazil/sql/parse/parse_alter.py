"""ALTER TABLE, ALTER VIEW and COMMENT ON."""

from __future__ import annotations

from typing import Any, Final

from frazil.format.metadata.metadata import RefKind
from frazil.parser.cursor import Cursor, Name, chain, chains, columns_in_brackets
from frazil.sql.parse.parse_tables import (
    NAMESPACE,
    column,
    property_key,
    property_list,
    terms,
    type_text,
    write_order,
)
from frazil.sql.parse.statements import (
    AddColumns,
    Alteration,
    AlterColumn,
    AlterNamespace,
    AlterTable,
    AlterView,
    CreateRef,
    CreateView,
    DropColumns,
    DropRef,
    IdentifierFields,
    PartitionField,
    RenameColumn,
    RenameTable,
    SetExpressions,
    SetProperties,
    WriteOrder,
)

_UNITS: Final = {
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
}


def alter(cursor: Cursor) -> AlterTable | AlterView | AlterNamespace | CreateView:
    """ALTER TABLE t …, ALTER VIEW v …, ALTER NAMESPACE n …."""
    cursor.expect("alter")
    if cursor.take_any(*NAMESPACE):
        namespace = chain(cursor, "a namespace")
        does = _properties(cursor)
        cursor.finish()
        return AlterNamespace(namespace=namespace, does=does)
    if cursor.take("view"):
        view = chain(cursor, "a view")
        if cursor.take("as"):
            query = cursor.rest("a query")
            return CreateView(view=view, query=query, or_replace=True, must_exist=True)
        if cursor.take("rename", "to"):
            statement = AlterView(view=view, does=RenameTable(to=chain(cursor, "a name")))
        else:
            statement = AlterView(view=view, does=_properties(cursor))
        cursor.finish()
        return statement
    cursor.expect("table")
    if_exists = cursor.take("if", "exists")
    table = chain(cursor)
    start = cursor.offset
    alteration = _alteration(cursor)
    cursor.finish()
    return AlterTable(table=table, start=start, does=alteration, if_exists=if_exists)


def comment(cursor: Cursor) -> AlterTable | AlterView:
    """COMMENT ON TABLE t IS '…', COMMENT ON VIEW v IS '…', COMMENT ON COLUMN t.c IS '…'."""
    cursor.expect("comment")
    cursor.expect("on")
    on_column = cursor.take("column")
    on_view = not on_column and cursor.take("view")
    if not on_column and not on_view:
        cursor.expect("table")
    start = cursor.offset
    name = chain(cursor, "a name")
    cursor.expect("is")
    text = None if cursor.take("null") else cursor.string()
    cursor.finish()
    if not on_column:
        updates = {} if text is None else {"comment": text}
        does = SetProperties(updates=updates, removals=() if updates else ("comment",))
        if on_view:
            return AlterView(view=name, does=does)
        return AlterTable(table=name, start=start, does=does)
    if len(name.parts) < 2:
        raise cursor.source.problem(start, "expected table.column")
    at = Name(name.parts[-1:], name.start, name.end)
    new = AlterColumn(column=at, doc=text or "")
    return AlterTable(table=name, start=start, does=new, has_column=True)


def _alteration(cursor: Cursor) -> Alteration:
    if cursor.take("add"):
        return _add(cursor)
    if cursor.take("drop"):
        return _drop(cursor)
    if cursor.take("rename", "to"):
        return RenameTable(to=chain(cursor, "a name"))
    if cursor.take("rename"):
        cursor.take("column")
        old = chain(cursor, "a column")
        cursor.expect("to")
        return RenameColumn(column=old, to=cursor.name("a name"))
    if cursor.take("alter") or cursor.take("change"):
        cursor.take("column")
        return _column_change(cursor)
    if cursor.ahead("set", "identifier") or cursor.ahead("set", "identifier", "fields"):
        cursor.expect("set", "identifier", "fields")
        return IdentifierFields(columns=_list(cursor))
    if cursor.take("set", "expressions"):
        return SetExpressions(terms=terms(cursor, cursor.bracketed("an expression")))
    if cursor.take("unset", "expressions"):
        return SetExpressions(terms=())
    if cursor.ahead("set") or cursor.ahead("unset"):
        return _properties(cursor)
    if cursor.take("write"):
        if cursor.take("distributed", "by", "partition"):
            is_ordered = cursor.token is not None
            return WriteOrder(terms=write_order(cursor) if is_ordered else (), mode="hash")
        return WriteOrder(terms=write_order(cursor))
    if cursor.take("replace", "partition", "field"):
        old_field = cursor.source.of(cursor.until("with", what="a partition field"))
        cursor.expect("with")
        added, name = _field(cursor)
        return PartitionField(drop=old_field, add=added, name=name)
    if cursor.take("create"):
        return _ref(cursor, create=True, replace=cursor.take("or", "replace"))
    if cursor.take("replace"):
        return _ref(cursor, create=False, replace=True)
    raise cursor.unexpected(
        "ADD, DROP, RENAME, ALTER COLUMN, SET, UNSET, WRITE, REPLACE PARTITION FIELD, "
        "CREATE BRANCH or CREATE TAG"
    )


def _add(cursor: Cursor) -> Alteration:
    if cursor.take("partition", "field"):
        added, name = _field(cursor)
        return PartitionField(add=added, name=name)
    if cursor.take("columns") or cursor.take("column") or cursor.token is not None:
        if_not_exists = cursor.take("if", "not", "exists")
        read_list = cursor.in_brackets if cursor.is_at("(") else cursor.listed
        columns = read_list(lambda: column(cursor))
        return AddColumns(columns=tuple(columns), if_not_exists=if_not_exists)
    raise cursor.unexpected("COLUMN or PARTITION FIELD")


def _field(cursor: Cursor) -> tuple[str, str | None]:
    term = cursor.source.of(cursor.until("as", what="a partition field"))
    return term, cursor.name() if cursor.take("as") else None


def _drop(cursor: Cursor) -> Alteration:
    if cursor.take("partition", "field"):
        return PartitionField(drop=cursor.source.of(cursor.rest("a partition field")))
    if cursor.take("identifier", "fields"):
        return IdentifierFields(columns=_list(cursor), drop=True)
    for kind in RefKind:
        if cursor.take(kind.value):
            if_exists = cursor.take("if", "exists")
            return DropRef(name=_ref_name(cursor), kind=kind, if_exists=if_exists)
    cursor.take_any("columns", "column")
    if_exists = cursor.take("if", "exists")
    columns = columns_in_brackets(cursor) if cursor.is_at("(") else chains(cursor)
    return DropColumns(columns=columns, if_exists=if_exists)


def _list(cursor: Cursor) -> tuple[str, ...]:
    return tuple(map(str, chains(cursor)))


def _column_change(cursor: Cursor) -> AlterColumn:
    name = chain(cursor, "a column")
    if cursor.take("set", "data", "type") or cursor.take("type") or cursor.take("set", "type"):
        return AlterColumn(column=name, type=type_text(cursor))
    if cursor.take("set", "not", "null"):
        return AlterColumn(column=name, required=True)
    if cursor.take("drop", "not", "null"):
        return AlterColumn(column=name, required=False)
    if cursor.take("set", "default"):
        return AlterColumn(column=name, default=cursor.rest("a value"))
    if cursor.take("drop", "default"):
        return AlterColumn(column=name, drop_default=True)
    if cursor.take("comment"):
        return AlterColumn(column=name, doc=cursor.string())
    if cursor.take("first"):
        return AlterColumn(column=name, first=True)
    if cursor.take("after"):
        return AlterColumn(column=name, after=cursor.name("a column"))
    raise cursor.unexpected(
        "TYPE, SET NOT NULL, DROP NOT NULL, SET DEFAULT, DROP DEFAULT, COMMENT, FIRST or AFTER"
    )


def _properties(cursor: Cursor) -> SetProperties:
    if cursor.take("set"):
        _properties_word(cursor)
        return SetProperties(updates=property_list(cursor))
    cursor.expect("unset")
    _properties_word(cursor)
    cursor.take("if", "exists")
    return SetProperties(removals=tuple(cursor.in_brackets(lambda: property_key(cursor))))


def _properties_word(cursor: Cursor) -> None:
    if not cursor.take_any("tblproperties", "dbproperties"):
        cursor.expect("properties")


def _ref_name(cursor: Cursor) -> str:
    """The name of a branch or tag; dashes need no quotes."""
    name = cursor.name("the name of a branch or tag")
    while cursor.take_symbol("-"):
        name += f"-{cursor.advance().value}"
    return name


def _ref(cursor: Cursor, *, create: bool, replace: bool) -> CreateRef:
    kind = RefKind.BRANCH if cursor.take("branch") else RefKind.TAG
    if kind is RefKind.TAG:
        cursor.expect("tag")
    if_not_exists = cursor.take("if", "not", "exists")
    name = _ref_name(cursor)
    more: dict[str, Any] = {}
    if cursor.take("as", "of", "version"):
        more["snapshot_id"] = cursor.number("a snapshot id")
    if cursor.take("retain"):
        more["max_ref_age_ms"] = _duration(cursor)
    if kind is RefKind.BRANCH and cursor.take("with", "snapshot", "retention"):
        if cursor.following is not None and cursor.following.is_word("snapshots", "snapshot"):
            more["min_snapshots"] = cursor.number()
            cursor.index += 1
        if cursor.token is not None:
            more["max_snapshot_age_ms"] = _duration(cursor)
    return CreateRef(
        name=name,
        kind=kind,
        create=create,
        replace=replace,
        if_not_exists=if_not_exists,
        **more,
    )


def _duration(cursor: Cursor) -> int:
    amount = cursor.number()
    for unit, ms in _UNITS.items():
        if cursor.take_any(unit, f"{unit}s"):
            return amount * ms
    raise cursor.unexpected("MINUTES, HOURS or DAYS")
