"""CALL system.…: table maintenance by the names and arguments of Iceberg's procedures."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import pyarrow as pa

from frazil.catalog.names import undotted
from frazil.errors import InvalidInput, NotFound
from frazil.sql.name_resolution import Names
from frazil.sql.output.query_result import Result
from frazil.sql.parse import statements as st
from frazil.table import refs
from frazil.table.table import Table
from frazil.text_format import did_you_mean
from frazil.value_classes import dataclass, field, frozen, replace

if TYPE_CHECKING:
    from frazil.sql.run.execution import Execution
    from frazil.table.catalog import Catalog

    Context: TypeAlias = "Execution | _Context"

log: Final = logging.getLogger(__name__)
Values = Mapping[str, Any]
Parts = Sequence[str]
Types = Mapping[str, type | tuple[type, ...]]
_NONE: Final[Mapping[str, Any]] = {}
Run: TypeAlias = "Callable[[Table, Values, Context], pa.Table]"


@frozen
class Procedure:
    """A procedure: its arguments in order, and what carries it out.

    `run` gets the table that the argument `table` names; `make`, which makes it, the name. `hints`
    are arguments that say how Iceberg's own job goes about it, and why there is no need of that
    here: they are taken, so that calls which give them work, and noted.
    """

    arguments: Types
    required: tuple[str, ...]
    run: Run | None = None
    hints: Mapping[str, str] = field(default_factory=dict)
    make: Callable[[Parts, Values, Context], pa.Table] | None = None

    @staticmethod
    def of(
        run: Run,
        needed: Types = _NONE,
        *,
        optional: Types = _NONE,
        hints: Mapping[str, str] = _NONE,
    ) -> Procedure:
        """One for a table that exists, by the arguments it has besides."""
        arguments = {"table": str, **needed, **optional}
        return Procedure(arguments=arguments, required=("table", *needed), run=run, hints=hints)


def run(statement: st.Call, at: Execution) -> Result:
    """Carry out CALL."""
    name = statement.procedure
    with at.place(name.start):
        at.transactions.refuse("CALL")
        if len(name.parts) > 1 and name.parts[-2].lower() != "system":
            raise NotFound(f"procedures are in system, not in {name.parts[-2]!r}")
        check_name(name.parts[-1])
        procedure = PROCEDURES[name.parts[-1].lower()]
    values = _arguments(statement, procedure, at)
    with at.place(name.start):
        return Result.of(_carried_out(procedure, values, at))


def call(
    catalog: Catalog, name: str, values: Values, *, runs: Mapping[str, Run] | None = None
) -> pa.Table:
    """Carry out a procedure with values that another engine has read; it knows the arguments.
    `runs` are the engine's own ways to do so."""
    procedure = PROCEDURES[name]
    if runs is not None and name in runs:
        procedure = replace(procedure, run=runs[name])
    return _carried_out(procedure, dict(values), _Context(catalog, Names(catalog)))


def check_name(name: str) -> None:
    """Refuse a name that no procedure has."""
    if name.lower() not in PROCEDURES:
        raise NotFound(f"procedure {name} does not exist; {_instead(name.lower())}")


@dataclass(frozen=True, slots=True)
class _Context:
    """Where names are looked up."""

    catalog: Catalog
    names: Names


def _carried_out(procedure: Procedure, values: dict[str, Any], at: Context) -> pa.Table:
    target = list(undotted(str(values.pop("table"))))
    for name in [name for name in values if name in procedure.hints]:
        del values[name]
        log.warning("argument %s is not used: %s", name, procedure.hints[name])
    if procedure.make is not None:
        return procedure.make(target, values, at)
    assert procedure.run is not None
    return procedure.run(at.names.table(target), values, at)


def _instead(name: str) -> str:
    if name in INSTEAD:
        return INSTEAD[name]
    return f"there are {', '.join(PROCEDURES)}{did_you_mean(name, PROCEDURES)}"


def _arguments(statement: st.Call, procedure: Procedure, at: Execution) -> dict[str, Any]:
    allowed = list(procedure.arguments)
    values: dict[str, Any] = {}
    if len(statement.positional) > len(allowed):
        raise at.source.problem(
            statement.positional[len(allowed)].start,
            f"{statement.procedure} takes {len(allowed)} arguments: {', '.join(allowed)}",
        )
    pairs = [
        *(
            (name, part.start, part)
            for name, part in zip(allowed, statement.positional, strict=False)
        ),
        *((name.parts[0].lower(), name.start, part) for name, part in statement.named),
    ]
    for name, start, part in pairs:
        if name not in procedure.arguments:
            raise at.source.problem(
                start,
                f"{statement.procedure} has no argument {name!r}; it has {', '.join(allowed)}",
            )
        if name in values:
            raise at.source.problem(start, f"argument {name} is given twice")
        value = at.constant(part)
        if procedure.arguments[name] is dict and _is_pairs(value):
            value = dict(value)
        if value is not None and not isinstance(value, procedure.arguments[name]):
            raise at.source.problem(
                part.start, f"argument {name} is {value!r}; expected {_shown(procedure, name)}"
            )
        if value is not None:
            values[name] = value
    missing = [name for name in procedure.required if name not in values]
    if missing:
        raise at.source.problem(
            statement.procedure.start, f"{statement.procedure} needs {', '.join(missing)}"
        )
    return values


def _is_pairs(value: Any) -> bool:
    """Whether it is a map as Arrow gives it."""
    return isinstance(value, list) and all(isinstance(item, tuple) for item in value)


def _shown(procedure: Procedure, name: str) -> str:
    kinds = procedure.arguments[name]
    words = {
        int: "a whole number",
        str: "a text",
        bool: "true or false",
        datetime: "a timestamp",
        list: "an array",
        dict: "a map",
    }
    listed = kinds if isinstance(kinds, tuple) else (kinds,)
    return " or ".join(words[kind] for kind in listed)


def _row(**values: Any) -> pa.Table:
    """One row; what may be NULL is the id of a snapshot."""
    kinds = {key: pa.int64() if value is None else None for key, value in values.items()}
    return pa.table({key: pa.array([value], kinds[key]) for key, value in values.items()})


def _utc(moment: Any) -> Any:
    if isinstance(moment, datetime) and moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    return moment


def _current(table: Table) -> int | None:
    snapshot = table.refresh().current_snapshot()
    return None if snapshot is None else int(snapshot.snapshot_id)


def _moving(act: Callable[[Table, Values], Any]) -> Callable[[Table, Values, Any], pa.Table]:
    """A procedure that moves the branch; gives where it was and is."""

    def move(table: Table, values: Values, _: Any) -> pa.Table:
        before = _current(table)
        act(table, values)
        return _row(previous_snapshot_id=before, current_snapshot_id=_current(table))

    return move


def _set_current(table: Table, values: Values) -> None:
    if ("snapshot_id" in values) == ("ref" in values):
        raise InvalidInput("give either snapshot_id or ref")
    table.set_current(values.get("snapshot_id", values.get("ref")))


def _cherry_pick(table: Table, values: Values, _: Any) -> pa.Table:
    table.cherry_pick(values["snapshot_id"])
    return _row(source_snapshot_id=values["snapshot_id"], current_snapshot_id=_current(table))


def _publish(table: Table, values: Values, _: Any) -> pa.Table:
    wap_id = values["wap_id"]
    snapshots = [
        snapshot for snapshot in table.snapshots() if snapshot.summary.get("wap.id") == wap_id
    ]
    if len(snapshots) != 1:
        many = "no snapshot" if not snapshots else f"more than one snapshot ({len(snapshots)})"
        raise NotFound(f"{many} of {table.name} has wap.id {wap_id!r} in its summary")
    return _cherry_pick(table, {"snapshot_id": int(snapshots[0].snapshot_id)}, None)


def _snapshot(target: Parts, values: Values, at: Context) -> pa.Table:
    source = at.names.table(list(undotted(values["source_table"])))
    copy = source.clone(
        at.catalog,
        at.names.full(target),
        location=values.get("location"),
        properties=values.get("properties"),
    )
    return _row(imported_files_count=copy.inspect.files.num_rows)


def _fast_forward(table: Table, values: Values, _: Any) -> pa.Table:
    branch = values["branch"]
    ref = table.metadata.refs.get(branch)
    before = None if ref is None else int(ref.snapshot_id)
    table.fast_forward(branch, to=values["to"])
    after = int(table.refresh().metadata.refs[branch].snapshot_id)
    return _row(branch_updated=branch, previous_ref=before, updated_ref=after)


def _expire(table: Table, values: Values, _: Any) -> pa.Table:
    return expired(table, values)


def expired(table: Table, values: Values, **how: Any) -> pa.Table:
    """Expire snapshots; `how` may say who deletes the files."""
    result = table._expire_snapshots(
        _utc(values.get("older_than")),
        values.get("retain_last"),
        snapshot_ids=values.get("snapshot_ids"),
        dry_run=values.get("dry_run", False),
        **how,
    )
    return _row(
        expired_snapshots=len(result.snapshot_ids),
        deleted_files=sum(map(len, result.files.values())),
        failed_files=len(result.failed),
    )


def _orphans(table: Table, values: Values, _: Any) -> pa.Table:
    removed = table.remove_orphan_files(
        older_than=_utc(values.get("older_than")),
        location=values.get("location"),
        dry_run=values.get("dry_run", False),
    )
    paths = [file.path for file in removed.files]
    return pa.table({"orphan_file_location": pa.array(paths, pa.string())})


def _rewrite_manifests(table: Table, _: Values, __: Any) -> pa.Table:
    before = table.inspect.manifests.num_rows
    result = table.rewrite_manifests()
    after = table.refresh().inspect.manifests.num_rows
    return rewritten_manifests(result.committed, before=before, after=after)


def rewritten_manifests(is_done: bool, *, before: int, after: int) -> pa.Table:
    """What `rewrite_manifests` answers."""
    return _row(
        rewritten_manifests_count=before if is_done else 0,
        added_manifests_count=after if is_done else 0,
    )


def _compute_stats(table: Table, values: Values, _: Any) -> pa.Table:
    statistics = table.compute_statistics(values.get("columns"), as_of=values.get("snapshot_id"))
    return _row(statistics_file=statistics.statistics_file)


def _add_column(table: Table, values: Values, _: Any) -> pa.Table:
    result = table.add_columns({values["name"]: values["value"]})
    return _row(
        updated_rows=result.rows_updated,
        column_files=result.column_files,
        column_bytes=result.column_bytes,
    )


def _purge_deleted(table: Table, values: Values, _: Any) -> pa.Table:
    purged = table.purge_deleted(values.get("where"))
    return _row(
        purged_rows=purged.rows,
        rewritten_files=len(purged.old_files),
        files_left=len(purged.files_left()),
        snapshots_to_expire=len(purged.snapshots),
    )


@frozen
class Rewriting:
    """What rewrite_data_files asks for. `by` lists the columns of a sort or a Z-order; without
    any, a sort has those of the table."""

    strategy: Literal["bin-pack", "sort", "z-order"]
    by: tuple[str, ...]
    where: str | None

    @staticmethod
    def of(values: Values) -> Rewriting:
        """The arguments of a call, checked."""
        order, where = values.get("sort_order"), values.get("where")
        strategy = str(values.get("strategy", "binpack" if order is None else "sort")).lower()
        if strategy not in ("binpack", "sort"):
            raise InvalidInput(f"strategy is {strategy!r}; expected binpack or sort")
        if strategy == "binpack":
            if order is not None:
                raise InvalidInput("sort_order requires strategy => 'sort'")
            return Rewriting(strategy="bin-pack", by=(), where=where)
        zorder = None if order is None else _ZORDER.fullmatch(order.strip())
        if zorder is not None:
            names = tuple(name.strip() for name in zorder[1].split(","))
            return Rewriting(strategy="z-order", by=names, where=where)
        terms = () if order is None else tuple(term.strip() for term in _TERMS.split(order))
        return Rewriting(strategy="sort", by=terms, where=where)


def rewritten(*, removed: int, added: int, size: int, failed: int) -> pa.Table:
    """The answer of rewrite_data_files."""
    return _row(
        rewritten_data_files_count=removed,
        added_data_files_count=added,
        rewritten_bytes_count=size,
        failed_data_files_count=failed,
    )


def on_branch(table: Table, values: Values) -> Table:
    """The table on the branch that a call names."""
    branch = values.get("branch")
    return table if branch is None else table.branch(branch, create=False)


def _rewrite_data_files(table: Table, values: Values, _: Any) -> pa.Table:
    asked = Rewriting.of(values)
    sort_by: Any = asked.by or table.metadata.sort_order()
    result = on_branch(table, values).compact(
        asked.where,
        sort_by=sort_by if asked.strategy == "sort" else None,
        zorder_by=asked.by if asked.strategy == "z-order" else None,
        **parsed_options(values.get("options", {}), _COMPACTION),
    )
    summary = {} if result.snapshot is None else result.snapshot.summary
    return rewritten(
        removed=result.files_removed,
        added=result.files_added,
        size=int(summary.get("removed-files-size", 0)),
        failed=0,
    )


def parsed_options(
    options: Mapping[str, Any], known: Mapping[str, tuple[str, type]]
) -> dict[str, Any]:
    """Options by Iceberg's names as arguments; `known` has the name and type of each."""
    settings: dict[str, Any] = {}
    for key, value in options.items():
        if key not in known:
            raise InvalidInput(f"unknown option {key!r}; rewrite_data_files has {', '.join(known)}")
        name, kind = known[key]
        text = str(value).lower()
        words, pattern = _OPTION_TEXTS[kind]
        if re.fullmatch(pattern, text) is None:
            raise InvalidInput(f"option {key} is {value!r}; expected {words}")
        settings[name] = text == "true" if kind is bool else kind(text)
    return settings


def _ancestors(table: Table, values: Values, _: Any) -> pa.Table:
    start = (
        table.snapshot(values["snapshot_id"])
        if "snapshot_id" in values
        else table.current_snapshot()
    )
    ancestors = list(refs.ancestors(table._handle, start))
    return pa.table(
        {
            "snapshot_id": pa.array([snapshot.snapshot_id for snapshot in ancestors], pa.int64()),
            "timestamp": pa.array(
                [snapshot.timestamp_ms for snapshot in ancestors], pa.timestamp("ms")
            ),
        }
    )


def _add_files(table: Table, values: Values, _: Context) -> pa.Table:
    arguments = [values[key] for key in ("files", "source_table") if key in values]
    if len(arguments) != 1:
        raise InvalidInput("add_files needs files or source_table, one of them")
    (files,) = arguments
    listed = [files] if isinstance(files, str) else list(files)
    added = [match[1] if (match := _SOURCE.fullmatch(text)) else text for text in listed]
    if "source_table" in values and added == listed:
        raise InvalidInput(
            f"source_table is {files!r}; expected files as `parquet`.`folder`; rows of a table "
            "are added by INSERT"
        )
    result = table.add_files(added, check_duplicates=values.get("check_duplicate_files", True))
    return _row(added_files_count=result.files_added)


def _register(target: Parts, values: Values, at: Context) -> pa.Table:
    registered = at.catalog.register_table(at.names.full(target), values["metadata_file"])
    return _row(current_snapshot_id=_current(registered))


def _check(table: Table, values: Values, _: Any) -> pa.Table:
    report = table.check(deep=values.get("deep", False))
    problems = [str(problem) for problem in report.problems]
    return pa.table({"problem": pa.array(problems, pa.string())})


_ZORDER: Final = re.compile(r"zorder\s*\((.*)\)", re.IGNORECASE)
_TERMS: Final = re.compile(r",(?![^(\[]*[)\]])")
"""Commas between the terms of an order, not those inside bucket(16, id)."""
_OPTION_TEXTS: Final[Mapping[type, tuple[str, str]]] = {
    int: ("a whole number", r"\d+"),
    float: ("a number", r"\d+(\.\d+)?"),
    bool: ("true or false", "true|false"),
}
_COMPACTION: Final[Mapping[str, tuple[str, type]]] = {
    "target-file-size-bytes": ("target_file_bytes", int),
    "min-input-files": ("min_input_files", int),
    "rewrite-all": ("rewrite_all", bool),
    "merge-columns": ("merge_columns", bool),
}
_DELETES: Final = "files are deleted side by side, as many as the storage takes"
_SOURCE: Final = re.compile(r"`?parquet`?\s*\.\s*`([^`]+)`", re.IGNORECASE)
"""Files as Iceberg's add_files has them."""
PROCEDURES: Final[Mapping[str, Procedure]] = {
    "rollback_to_snapshot": Procedure.of(
        _moving(lambda table, values: table.rollback(values["snapshot_id"])), {"snapshot_id": int}
    ),
    "rollback_to_timestamp": Procedure.of(
        _moving(lambda table, values: table.rollback(_utc(values["timestamp"]))),
        {"timestamp": (datetime, str)},
    ),
    "set_current_snapshot": Procedure.of(
        _moving(_set_current), optional={"snapshot_id": int, "ref": str}
    ),
    "cherrypick_snapshot": Procedure.of(_cherry_pick, {"snapshot_id": int}),
    "publish_changes": Procedure.of(_publish, {"wap_id": str}),
    "fast_forward": Procedure.of(_fast_forward, {"branch": str, "to": str}),
    "expire_snapshots": Procedure.of(
        _expire,
        optional={
            "older_than": (datetime, str),
            "retain_last": int,
            "max_concurrent_deletes": int,
            "stream_results": bool,
            "snapshot_ids": list,
            "clean_expired_metadata": bool,
            "dry_run": bool,
        },
        hints={
            "max_concurrent_deletes": _DELETES,
            "stream_results": "what is deleted is known from the tree, in little memory",
            "clean_expired_metadata": "schemas and partition specs stay",
        },
    ),
    "remove_orphan_files": Procedure.of(
        _orphans,
        optional={
            "older_than": (datetime, str),
            "location": str,
            "dry_run": bool,
            "max_concurrent_deletes": int,
        },
        hints={"max_concurrent_deletes": _DELETES},
    ),
    "rewrite_data_files": Procedure.of(
        _rewrite_data_files,
        optional={
            "strategy": str,
            "sort_order": str,
            "options": dict,
            "where": str,
            "branch": str,
        },
    ),
    "purge_deleted": Procedure.of(_purge_deleted, optional={"where": str}),
    "rewrite_manifests": Procedure.of(
        _rewrite_manifests,
        optional={"use_caching": bool, "spec_id": int},
        hints={
            "use_caching": "entries are read once",
            "spec_id": "manifests of every partition spec are rewritten",
        },
    ),
    "compute_table_stats": Procedure.of(
        _compute_stats, optional={"snapshot_id": int, "columns": list}
    ),
    "add_column": Procedure.of(_add_column, {"name": str, "value": str}),
    "ancestors_of": Procedure.of(_ancestors, optional={"snapshot_id": int}),
    "add_files": Procedure.of(
        _add_files,
        optional={"files": (str, list), "check_duplicate_files": bool, "source_table": str},
    ),
    "register_table": Procedure(
        arguments={"table": str, "metadata_file": str},
        required=("table", "metadata_file"),
        make=_register,
    ),
    "snapshot": Procedure(
        arguments={"source_table": str, "table": str, "location": str, "properties": dict},
        required=("source_table", "table"),
        make=_snapshot,
    ),
    "check": Procedure.of(_check, optional={"deep": bool}),
}

INSTEAD: Final[Mapping[str, str]] = {
    "migrate": "register_table takes an Iceberg table into the catalog, and frazil upgrade, or "
    "table.upgrade(), makes it one of format version 4 in place",
    "rewrite_position_delete_files": "a data file has one deletion vector at most; "
    "rewrite_data_files applies them",
    "rewrite_table_path": "paths in metadata are relative to the table: copy its folder, then "
    "register_table",
    "compute_partition_stats": "the metadata table partitions has them",
    "create_changelog_view": "shop.orders.changes has the changes of shop.orders, and a view can "
    "be made of it",
}
"""Procedures of Iceberg that have no counterpart, and what there is."""
