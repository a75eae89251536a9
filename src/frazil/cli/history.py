"""Commands on history: log, tree, branch, tag, rollback, changes, diff."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from frazil.cli.command_line import (
    AsOfOption,
    CatalogOption,
    JsonOption,
    TableArgument,
    YesOption,
    app,
    confirm,
    open_catalog,
    open_table,
)
from frazil.cli.terminal import output
from frazil.cli.terminal.formats import Format, FormatOption, print_rows
from frazil.errors import AlreadyExists
from frazil.text_format import counted, size

if TYPE_CHECKING:
    from frazil.cli.terminal import drawing
    from frazil.format.metadata.metadata import Snapshot
    from frazil.table import Table


@app.command()
def log(
    table: TableArgument,
    limit: Annotated[int, typer.Option("--limit", "-n", help="Maximum number of snapshots.")] = 20,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show snapshots, newest first: operation, files, rows, bytes.

    Example: `frazil log shop.orders -n 5`
    """
    opened = open_table(table, catalog)
    names: dict[int, list[str]] = {}
    for name, ref in opened.metadata.refs.items():
        names.setdefault(int(ref.snapshot_id), []).append(name)
    snapshots = list(reversed(opened.snapshots()))[:limit]
    rows = [_line(snapshot, names.get(int(snapshot.snapshot_id), [])) for snapshot in snapshots]
    lines = rows if as_json else [_short(row) for row in rows]
    output.emit_rows(lines, as_json=as_json, empty="no snapshots yet")


def _line(snapshot: Snapshot, names: list[str]) -> dict[str, Any]:
    from frazil.format.metadata.summary_totals import live_rows, number, rows_changed

    def stated(key: str) -> int:
        return number(snapshot.summary, key) or 0

    added, removed = rows_changed(snapshot)
    return {
        "snapshot": str(snapshot.snapshot_id),
        "refs": " ".join(names),
        "committed": output.when(snapshot.timestamp_ms),
        "operation": snapshot.operation or "",
        "files-added": stated("added-data-files"),
        "files-removed": stated("deleted-data-files"),
        "rows-added": added,
        "rows-removed": removed,
        "rows": live_rows(snapshot),
        "bytes": stated("total-files-size"),
        "metadata-bytes": stated("frazil.metadata-bytes-written"),
    }


def _short(line: dict[str, Any]) -> dict[str, Any]:
    """A line for a terminal; what matters most stands outside, where columns are dropped last."""

    return {
        "snapshot": line["snapshot"],
        "operation": line["operation"],
        "rows": f"+{line['rows-added']} −{line['rows-removed']}",
        "files": f"+{line['files-added']} −{line['files-removed']}",
        "bytes": size(line["bytes"]),
        "metadata": size(line["metadata-bytes"]),
        "total": line["rows"],
        "refs": line["refs"],
        "committed": line["committed"],
    }


class TreeFormat(StrEnum):
    """How a tree is drawn."""

    TEXT = "text"
    MERMAID = "mermaid"
    SVG = "svg"
    JSON = "json"


@app.command()
def tree(
    table: TableArgument,
    as_of: AsOfOption = None,
    against: Annotated[
        str | None, typer.Option("--against", help="A second snapshot to draw next to the first.")
    ] = None,
    leaves: Annotated[
        bool, typer.Option("--leaves", help="Show the entries of leaves, too.")
    ] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", help="Entries per manifest.")] = 20,
    columns: Annotated[
        int, typer.Option("--columns", help="Number of columns whose bounds are shown.")
    ] = 2,
    form: Annotated[
        TreeFormat, typer.Option("--format", "-f", help="Output format.")
    ] = TreeFormat.TEXT,
    to: Annotated[Path | None, typer.Option("--to", help="Write to a file.")] = None,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Draw the metadata tree: root, leaves, statuses, deletion vectors, bounds.

    Example: `frazil tree shop.orders --leaves --format svg --to tree.svg`
    """
    from frazil.cli.terminal import drawing

    opened = open_table(table, catalog)

    def picture(name: str | None) -> drawing.Drawing:
        snapshot = opened.current_snapshot() if name is None else opened.snapshot(name)
        return drawing.draw(opened._handle, snapshot, leaves=leaves, limit=limit, columns=columns)

    pictures = [picture(as_of)] + ([picture(against)] if against is not None else [])
    text = _drawn(pictures, TreeFormat.JSON if as_json and to is None else form)
    if to is not None:
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(text + "\n", encoding="utf-8")
        output.emit_text(f"drawn to {to}", {"file": str(to)}, as_json=as_json)
    else:
        output.console.print(text, markup=False, highlight=False, soft_wrap=True)


def _drawn(pictures: list[drawing.Drawing], form: TreeFormat) -> str:
    from frazil.cli.terminal import render
    from frazil.sql.output.display import json_value

    match form:
        case TreeFormat.JSON:
            values = [picture.to_dict() for picture in pictures]
            document = values[0] if len(values) == 1 else values
            return json.dumps(json_value(document), indent=2, ensure_ascii=False)
        case TreeFormat.MERMAID:
            return "\n\n".join(render.mermaid(picture) for picture in pictures)
        case TreeFormat.SVG:
            return render.svg(*pictures)
        case _:
            texts = [render.text(picture) for picture in pictures]
            return texts[0] if len(texts) == 1 else render.side_by_side(*texts)


@app.command()
def branch(
    table: TableArgument,
    name: Annotated[
        str | None, typer.Argument(help="Branch to create; lists branches if omitted.")
    ] = None,
    as_of: AsOfOption = None,
    drop: Annotated[bool, typer.Option("--drop", help="Drop the branch.")] = False,
    fast_forward: Annotated[
        str | None,
        typer.Option("--fast-forward", help="Fast-forward it to the snapshot of this branch."),
    ] = None,
    yes: YesOption = False,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """List, create, move or drop branches.

    Example: `frazil branch shop.orders audit`
    """
    opened = open_table(table, catalog)
    if name is not None and drop:
        _drop_ref(opened, name, "branch", yes=yes)
    elif name is not None and fast_forward is not None:
        opened.fast_forward(name, to=fast_forward)
    elif name is not None:
        if name in opened.metadata.refs:
            raise AlreadyExists(f"{opened.name}: {name!r} already exists")
        opened.branch(name, create=True, as_of=as_of)
    _list_refs(opened, "branch", as_json=as_json)


@app.command()
def tag(
    table: TableArgument,
    name: Annotated[
        str | None, typer.Argument(help="Tag to create; lists tags if omitted.")
    ] = None,
    as_of: AsOfOption = None,
    drop: Annotated[bool, typer.Option("--drop", help="Drop the tag.")] = False,
    yes: YesOption = False,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """List, create or drop tags.

    Example: `frazil tag shop.orders end-of-year --as-of 2024-12-31T23:59`
    """
    opened = open_table(table, catalog)
    if name is not None and drop:
        _drop_ref(opened, name, "tag", yes=yes)
    elif name is not None:
        opened.tag(name, as_of)
    _list_refs(opened, "tag", as_json=as_json)


def _drop_ref(table: Table, name: str, kind: str, *, yes: bool) -> None:
    drop = table.drop_branch if kind == "branch" else table.drop_tag
    if name in table.metadata.refs:
        question = f"Drop {kind} {name} of {table.name}? Its snapshots may then expire."
        confirm(question, yes=yes, otherwise=f"Not dropped: {kind} {name}")
    drop(name)


def _list_refs(table: Table, kind: str, *, as_json: bool) -> None:
    rows = [
        {"name": name, "kind": ref.kind.value, "snapshot": str(ref.snapshot_id)}
        for name, ref in sorted(table.metadata.refs.items())
        if ref.kind.value == kind
    ]
    output.emit_rows(rows, as_json=as_json, empty=f"{table.name} has no {kind}")


@app.command()
def rollback(
    table: TableArgument,
    to: Annotated[str, typer.Argument(help="Snapshot id, tag or time.")],
    yes: YesOption = False,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Roll a table back to an earlier snapshot.

    Example: `frazil rollback shop.orders 2024-01-15T10:00`
    """
    opened = open_table(table, catalog)
    target = opened.snapshot(to)
    before, after = (opened.scan(as_of=as_of).count() for as_of in (opened.branch_name, target))
    confirm(
        f"Roll {opened.name} back to {output.when(target.timestamp_ms)}, from {before} to "
        f"{counted(after, 'row')}?",
        yes=yes,
        otherwise=f"Not rolled back: {opened.name}",
    )
    opened.rollback(target)
    snapshot = opened.current_snapshot()
    assert snapshot is not None
    output.emit_text(
        f"{opened.name} is at snapshot {snapshot.snapshot_id} of "
        f"{output.when(snapshot.timestamp_ms)}: {counted(after, 'row')}, before {before}",
        {"snapshot-id": int(snapshot.snapshot_id), "rows": after, "rows-before": before},
        as_json=as_json,
    )


SinceOption = Annotated[
    str | None, typer.Option("--since", help="Start after this snapshot, branch, tag or time.")
]
UntilOption = Annotated[
    str | None, typer.Option("--until", help="End with this snapshot, branch, tag or time.")
]


@app.command()
def changes(
    table: TableArgument,
    since: SinceOption = None,
    until: UntilOption = None,
    files: Annotated[bool, typer.Option("--files", help="List files instead of rows.")] = False,
    collapse: Annotated[bool, typer.Option("--collapse", help="Net changes only.")] = False,
    limit: Annotated[
        int, typer.Option("--limit", "-n", help="Maximum number of rows or files.")
    ] = 50,
    format: FormatOption = Format.TABLE,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the rows or files that changed between two snapshots.

    Example: `frazil changes shop.orders --since yesterday-tag --collapse`
    """
    feed = open_table(table, catalog).changes(since=since, until=until, collapse=collapse)
    rows = feed.files() if files else feed.to_arrow()
    first = rows.slice(0, limit)
    print_rows(first.schema, first.to_batches(), format, as_json=as_json)
    if not as_json and format is Format.TABLE and rows.num_rows > limit:
        output.console.print(f"[dim]… {rows.num_rows - limit:,} more[/dim]")


@app.command()
def compare(
    table: TableArgument,
    other: Annotated[str, typer.Argument(help="Snapshot, branch, tag or another table.")],
    as_of: AsOfOption = None,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two snapshots, branches or tables: schema, properties, files, rows.

    Example: `frazil compare shop.orders audit`
    """
    opened = open_table(table, catalog)
    second: Any = other
    if other not in opened.metadata.refs and other.partition("@")[0] in open_catalog(catalog):
        second = open_table(other, catalog)
    result = opened.compare(second, as_of=as_of)
    output.emit_text(str(result), result.to_dict(), as_json=as_json)
