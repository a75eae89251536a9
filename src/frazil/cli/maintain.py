"""Commands that look after a table: maintain (compact, rewrite, expire, orphans), analyze and
check."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from frazil.cli.command_line import (
    CatalogOption,
    DryRunOption,
    JsonOption,
    TableArgument,
    WhereOption,
    YesOption,
    app,
    confirm,
    open_table,
)
from frazil.cli.rows import report
from frazil.cli.terminal import output
from frazil.errors import InvalidInput
from frazil.text_format import counted

maintain = typer.Typer(
    no_args_is_help=True, help="Compact data and metadata, expire snapshots, remove orphan files."
)
app.add_typer(maintain, name="maintain")

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def moment(text: str | None) -> datetime | None:
    """A time, or an age such as `7d` or `12h` counted back from now."""
    if text is None:
        return None
    unit = _UNITS.get(text[-1:])
    if unit and text[:-1].replace(".", "", 1).isdigit():
        return datetime.now(UTC) - timedelta(**{unit: float(text[:-1])})
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        problem = f"{text!r} is neither a time nor an age such as 7d, 12h or 30m"
        raise InvalidInput(problem) from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


OlderThanOption = Annotated[
    str | None, typer.Option("--older-than", help="A time, or an age such as 7d or 12h.")
]


@maintain.command("compact-metadata")
def compact_metadata(
    table: TableArgument, catalog: CatalogOption = None, as_json: JsonOption = False
) -> None:
    """Move the root's entries to leaves and merge small leaves.

    Example: `frazil maintain compact-metadata shop.orders`
    """
    opened = open_table(table, catalog)
    with output.bar("flushing", quiet=as_json) as step:
        result = opened.compact_metadata(progress=step)
    report(result, as_json=as_json)


@maintain.command("compact")
def compact(
    table: TableArgument,
    where: WhereOption = None,
    sort_by: Annotated[
        list[str] | None,
        typer.Option("--sort-by", help="Sort rows by this column, e.g. 'price desc'; repeatable."),
    ] = None,
    zorder_by: Annotated[
        list[str] | None,
        typer.Option("--zorder-by", help="Z-order by this column; repeat for each column."),
    ] = None,
    target_bytes: Annotated[
        int | None,
        typer.Option(
            "--target-bytes",
            help="Target size of new files [default: table property write.target-file-size-bytes].",
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also rewrite files that already have a good size.")
    ] = False,
    merge_columns: Annotated[
        bool,
        typer.Option("--merge-columns", help="Also rewrite files with columns in column files."),
    ] = False,
    on_spark: Annotated[
        bool, typer.Option("--spark", help="Run on Spark, in a session of its own.")
    ] = False,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Rewrite small data files and files with many deleted rows into files of a good size.

    Example: `frazil maintain compact shop.orders --where "day >= '2024-01-01'"`
    """
    if sort_by and zorder_by:
        raise InvalidInput("give --sort-by or --zorder-by, not both")
    if merge_columns and on_spark:
        raise InvalidInput("--merge-columns does not work with --spark; use --all")
    opened = open_table(table, catalog)
    if not on_spark:
        with output.bar("compacting", quiet=as_json) as step:
            result = opened.compact(
                where,
                sort_by=sort_by or None,
                zorder_by=zorder_by or None,
                target_file_bytes=target_bytes,
                rewrite_all=everything,
                merge_columns=merge_columns,
                progress=step,
            )
        report(result, as_json=as_json)
        return
    from frazil.cli.spark_session import local_spark

    with local_spark("frazil maintain compact"):
        from frazil.spark.jobs import rewrite_data_files

        rewritten = rewrite_data_files(
            opened,
            where,
            strategy="sort" if sort_by else "z-order" if zorder_by else "bin-pack",
            by=sort_by or zorder_by,
            target_file_bytes=target_bytes,
            rewrite_all=everything,
            progress=False if as_json else None,
        )
    output.emit_text(str(rewritten), asdict(rewritten), as_json=as_json)


@maintain.command("purge-deleted")
def purge_deleted(
    table: TableArgument,
    where: WhereOption = None,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Rewrite the data files that hold deleted rows, and no others, without those rows.

    Older snapshots keep the old files until `frazil maintain expire-snapshots` removes them.

    Example: `frazil maintain purge-deleted shop.customers`
    """
    opened = open_table(table, catalog)
    with output.bar("purging", quiet=as_json) as step:
        purged = opened.purge_deleted(where, progress=step)
    output.emit_text(str(purged), purged.to_dict(), as_json=as_json)


@maintain.command("rewrite-manifests")
def rewrite_manifests(
    table: TableArgument, catalog: CatalogOption = None, as_json: JsonOption = False
) -> None:
    """Rewrite all leaves, clustered; manifests of v1 to v3 become v4 leaves.

    Example: `frazil maintain rewrite-manifests shop.orders`
    """
    opened = open_table(table, catalog)
    with output.bar("rewriting manifests", quiet=as_json) as step:
        result = opened.rewrite_manifests(progress=step)
    report(result, as_json=as_json)


@maintain.command("expire-snapshots")
def expire_snapshots(
    table: TableArgument,
    older_than: OlderThanOption = None,
    keep_last: Annotated[
        int | None,
        typer.Option("--keep-last", help="Minimum number of snapshots to keep per branch."),
    ] = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Expire old snapshots and delete the files that only they reference.

    Example: `frazil maintain expire-snapshots shop.orders --older-than 7d --keep-last 10`
    """
    opened = open_table(table, catalog)
    if not (dry_run or yes):
        would = opened.expire_snapshots(
            older_than=moment(older_than), keep_last=keep_last, dry_run=True
        )
        files = counted(sum(map(len, would.files.values())), "file")
        snapshots = counted(len(would.snapshot_ids), "snapshot")
        confirm(
            f"Expire {snapshots} and delete {files} of {table}?",
            yes=yes,
            otherwise=f"Not expired: {snapshots}, {files}",
        )
    with output.bar("expiring", quiet=as_json) as step:
        expired = opened.expire_snapshots(
            older_than=moment(older_than), keep_last=keep_last, dry_run=dry_run, progress=step
        )
    output.emit_text(str(expired), expired.to_dict(), as_json=as_json)


@maintain.command("remove-orphan-files")
def remove_orphan_files(
    table: TableArgument,
    older_than: OlderThanOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete files in the table's folders that no snapshot references.

    Example: `frazil maintain remove-orphan-files shop.orders --dry-run`
    """
    opened = open_table(table, catalog)
    if not (dry_run or yes):
        would = opened.remove_orphan_files(older_than=moment(older_than), dry_run=True)
        files = counted(len(would.files), "file")
        confirm(f"Delete {files} of {table}?", yes=yes, otherwise=f"Not deleted: {files}")
    with output.bar("looking for orphans", quiet=as_json) as step:
        removed = opened.remove_orphan_files(
            older_than=moment(older_than), dry_run=dry_run, progress=step
        )
    output.emit_text(str(removed), removed.to_dict(), as_json=as_json)


@app.command()
def analyze(
    table: TableArgument, catalog: CatalogOption = None, as_json: JsonOption = False
) -> None:
    """Report a table's health and suggest what to run.

    Example: `frazil analyze shop.orders`
    """
    opened = open_table(table, catalog)
    with output.bar("looking", quiet=as_json) as step:
        analysis = opened.analyze(progress=step)
    output.emit_text(str(analysis), analysis.to_dict(), as_json=as_json)


@app.command()
def check(
    table: TableArgument,
    deep: Annotated[
        bool, typer.Option("--deep", help="Also read data files and deletion vectors.")
    ] = False,
    repair: Annotated[
        bool, typer.Option("--repair", help="Replace unusable values stored in the catalog.")
    ] = False,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check a table against every rule of the format. Exits with code 7 if a problem is found.

    Example: `frazil check shop.orders --deep`
    """
    opened = open_table(table, catalog)
    with output.bar("checking", quiet=as_json) as step:
        checked = opened.check(deep=deep, repair=repair, progress=step)
    output.emit_text(str(checked), checked.to_dict(), as_json=as_json)
    if checked.problems:
        raise typer.Exit(7)
