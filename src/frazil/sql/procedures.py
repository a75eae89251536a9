"""CALL system.…: table maintenance by the names and arguments of Iceberg's procedures."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from frazil.catalog.names import undotted
from frazil.errors import InvalidInput, NotFound
from frazil.sql import statements as st
from frazil.sql.query_result import Result
from frazil.table import refs
from frazil.table.table import Table
from frazil.words import did_you_mean

if TYPE_CHECKING:
    from frazil.sql.execution import Statement

Values = Mapping[str, Any]
Parts = Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """A procedure: its arguments in order, and what carries it out.

    `run` gets the table that the argument `table` names; `make`, which makes it, the name.
    """

    arguments: Mapping[str, type | tuple[type, ...]]
    required: tuple[str, ...] = ("table",)
    run: Callable[[Table, Values, Statement], pa.Table] | None = None
    make: Callable[[Parts, Values, Statement], pa.Table] | None = None


def run(statement: st.Call, at: Statement) -> Result:
    """Carry out CALL."""
    name = statement.procedure
    with at.place(name.start):
        at.transactions.refuse("CALL")
        if len(name.parts) > 1 and name.parts[-2].lower() != "system":
            raise NotFound(f"procedures are in system, not in {name.parts[-2]!r}")
        found = PROCEDURES.get(name.parts[-1].lower())
        if found is None:
            raise NotFound(f"procedure {name} does not exist; {_instead(name.parts[-1].lower())}")
    values = _arguments(statement, found, at)
    with at.place(name.start):
        target = list(undotted(str(values.pop("table"))))
        if found.make is not None:
            return Result.of(found.make(target, values, at))
        assert found.run is not None
        return Result.of(found.run(at.names.table(target), values, at))


def _instead(name: str) -> str:
    if name in INSTEAD:
        return INSTEAD[name]
    return f"there are {', '.join(PROCEDURES)}{did_you_mean(name, PROCEDURES)}"


def _arguments(statement: st.Call, found: Procedure, at: Statement) -> dict[str, Any]:
    known = list(found.arguments)
    values: dict[str, Any] = {}
    if len(statement.positional) > len(known):
        raise at.source.problem(
            statement.positional[len(known)].start,
            f"{statement.procedure} takes {len(known)} arguments: {', '.join(known)}",
        )
    pairs = [
        *(
            (name, part.start, part)
            for name, part in zip(known, statement.positional, strict=False)
        ),
        *((name.parts[0].lower(), name.start, part) for name, part in statement.named),
    ]
    for name, start, part in pairs:
        if name not in found.arguments:
            raise at.source.problem(
                start, f"{statement.procedure} has no argument {name!r}; it has {', '.join(known)}"
            )
        if name in values:
            raise at.source.problem(start, f"argument {name} is given twice")
        value = at.constant(part)
        if found.arguments[name] is dict and _is_pairs(value):
            value = dict(value)
        if value is not None and not isinstance(value, found.arguments[name]):
            raise at.source.problem(
                part.start, f"argument {name} is {value!r}; expected {_shown(found, name)}"
            )
        if value is not None:
            values[name] = value
    missing = [name for name in found.required if name not in values]
    if missing:
        raise at.source.problem(
            statement.procedure.start, f"{statement.procedure} needs {', '.join(missing)}"
        )
    return values


def _is_pairs(value: Any) -> bool:
    """Whether it is a map as Arrow gives it."""
    return isinstance(value, list) and all(isinstance(each, tuple) for each in value)


def _shown(found: Procedure, name: str) -> str:
    kinds = found.arguments[name]
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
    found = table.refresh().current_snapshot()
    return None if found is None else int(found.snapshot_id)


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
    wanted = values["wap_id"]
    found = [each for each in table.snapshots() if each.summary.get("wap.id") == wanted]
    if len(found) != 1:
        many = "no snapshot" if not found else f"more than one snapshot ({len(found)})"
        raise NotFound(f"{many} of {table.name} has wap.id {wanted!r} in its summary")
    return _cherry_pick(table, {"snapshot_id": int(found[0].snapshot_id)}, None)


def _snapshot(target: Parts, values: Values, at: Statement) -> pa.Table:
    source = at.names.table(list(undotted(values["source_table"])))
    made = source.clone(
        at.catalog,
        at.names.full(target),
        location=values.get("location"),
        properties=values.get("properties"),
    )
    return _row(imported_files_count=made.inspect.files.num_rows)


def _fast_forward(table: Table, values: Values, _: Any) -> pa.Table:
    branch = values["branch"]
    ref = table.metadata.refs.get(branch)
    before = None if ref is None else int(ref.snapshot_id)
    table.fast_forward(branch, to=values["to"])
    after = int(table.refresh().metadata.refs[branch].snapshot_id)
    return _row(branch_updated=branch, previous_ref=before, updated_ref=after)


def _expire(table: Table, values: Values, _: Any) -> pa.Table:
    done = table.expire_snapshots(
        older_than=_utc(values.get("older_than")),
        keep_last=values.get("retain_last"),
        snapshot_ids=values.get("snapshot_ids"),
        dry_run=values.get("dry_run", False),
    )
    return _row(
        expired_snapshots=len(done.snapshot_ids),
        deleted_files=sum(map(len, done.files.values())),
        failed_files=len(done.failed),
    )


def _orphans(table: Table, values: Values, _: Any) -> pa.Table:
    done = table.remove_orphan_files(
        older_than=_utc(values.get("older_than")),
        location=values.get("location"),
        dry_run=values.get("dry_run", False),
    )
    paths = [file.path for file in done.files]
    return pa.table({"orphan_file_location": pa.array(paths, pa.string())})


def _rewrite_manifests(table: Table, _: Values, __: Any) -> pa.Table:
    before = table.inspect.manifests.num_rows
    done = table.rewrite_manifests()
    after = table.refresh().inspect.manifests.num_rows
    return _row(
        rewritten_manifests_count=before if done.committed else 0,
        added_manifests_count=after if done.committed else 0,
    )


def _rewrite_data_files(table: Table, values: Values, _: Any) -> pa.Table:
    order = values.get("sort_order")
    strategy = str(values.get("strategy", "binpack" if order is None else "sort")).lower()
    if strategy not in ("binpack", "sort"):
        raise InvalidInput(f"strategy is {strategy!r}; expected binpack or sort")
    if strategy == "binpack" and order is not None:
        raise InvalidInput("sort_order goes with strategy => 'sort'")
    sort_by: Any = None if strategy == "binpack" else table.sort_order
    zorder = None if order is None else _ZORDER.fullmatch(order.strip())
    if order is not None:
        sort_by = None if zorder else [term.strip() for term in _TERMS.split(order)]
    done = table.compact(
        values.get("where"),
        sort_by=sort_by,
        zorder_by=[name.strip() for name in zorder[1].split(",")] if zorder else None,
        **_compact_options(values.get("options", {})),
    )
    summary = {} if done.snapshot is None else done.snapshot.summary
    return _row(
        rewritten_data_files_count=done.files_removed,
        added_data_files_count=done.files_added,
        rewritten_bytes_count=int(summary.get("removed-files-size", 0)),
        failed_data_files_count=0,
    )


def _compact_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options by Iceberg's names as arguments of `compact`."""
    made: dict[str, Any] = {}
    for key, value in given.items():
        text = str(value).lower()
        if key == "rewrite-all" and text in ("true", "false"):
            made["rewrite_all"] = text == "true"
        elif key in _NUMBERS and text.isdigit():
            made[_NUMBERS[key]] = int(text)
        elif key in _NUMBERS or key == "rewrite-all":
            expected = "true or false" if key == "rewrite-all" else "a whole number"
            raise InvalidInput(f"option {key} is {value!r}; expected {expected}")
        else:
            known = ", ".join([*_NUMBERS, "rewrite-all"])
            raise InvalidInput(f"unknown option {key!r}; rewrite_data_files has {known}")
    return made


def _ancestors(table: Table, values: Values, _: Any) -> pa.Table:
    start = (
        table.snapshot(values["snapshot_id"])
        if "snapshot_id" in values
        else table.current_snapshot()
    )
    found = list(refs.ancestors(table._handle, start))
    return pa.table(
        {
            "snapshot_id": pa.array([each.snapshot_id for each in found], pa.int64()),
            "timestamp": pa.array([each.timestamp_ms for each in found], pa.timestamp("ms")),
        }
    )


def _add_files(table: Table, values: Values, at: Statement) -> pa.Table:
    files = values["files"]
    added = [files] if isinstance(files, str) else list(files)
    table.add_files(added, check_duplicates=values.get("check_duplicate_files", True))
    return _row(added_files_count=len(added))


def _register(target: Parts, values: Values, at: Statement) -> pa.Table:
    made = at.catalog.register_table(at.names.full(target), values["metadata_file"])
    return _row(current_snapshot_id=_current(made))


def _check(table: Table, values: Values, _: Any) -> pa.Table:
    report = table.check(deep=values.get("deep", False))
    found = [str(problem) for problem in report.problems]
    return pa.table({"problem": pa.array(found, pa.string())})


_TABLE = {"table": str}
_ZORDER: Final = re.compile(r"zorder\s*\((.*)\)", re.IGNORECASE)
_TERMS: Final = re.compile(r",(?![^(\[]*[)\]])")
"""Commas between the terms of an order, not those inside bucket(16, id)."""
_NUMBERS: Final = {
    "target-file-size-bytes": "target_file_bytes",
    "min-input-files": "min_input_files",
}
PROCEDURES: Final[Mapping[str, Procedure]] = {
    "rollback_to_snapshot": Procedure(
        arguments={**_TABLE, "snapshot_id": int},
        required=("table", "snapshot_id"),
        run=_moving(lambda table, values: table.rollback(values["snapshot_id"])),
    ),
    "rollback_to_timestamp": Procedure(
        arguments={**_TABLE, "timestamp": (datetime, str)},
        required=("table", "timestamp"),
        run=_moving(lambda table, values: table.rollback(_utc(values["timestamp"]))),
    ),
    "set_current_snapshot": Procedure(
        arguments={**_TABLE, "snapshot_id": int, "ref": str},
        run=_moving(_set_current),
    ),
    "cherrypick_snapshot": Procedure(
        arguments={**_TABLE, "snapshot_id": int},
        required=("table", "snapshot_id"),
        run=_cherry_pick,
    ),
    "publish_changes": Procedure(
        arguments={**_TABLE, "wap_id": str}, required=("table", "wap_id"), run=_publish
    ),
    "fast_forward": Procedure(
        arguments={**_TABLE, "branch": str, "to": str},
        required=("table", "branch", "to"),
        run=_fast_forward,
    ),
    "expire_snapshots": Procedure(
        arguments={
            **_TABLE,
            "older_than": (datetime, str),
            "retain_last": int,
            "snapshot_ids": list,
            "dry_run": bool,
        },
        run=_expire,
    ),
    "remove_orphan_files": Procedure(
        arguments={**_TABLE, "older_than": (datetime, str), "location": str, "dry_run": bool},
        run=_orphans,
    ),
    "rewrite_data_files": Procedure(
        arguments={**_TABLE, "strategy": str, "sort_order": str, "options": dict, "where": str},
        run=_rewrite_data_files,
    ),
    "rewrite_manifests": Procedure(arguments=_TABLE, run=_rewrite_manifests),
    "ancestors_of": Procedure(arguments={**_TABLE, "snapshot_id": int}, run=_ancestors),
    "add_files": Procedure(
        arguments={**_TABLE, "files": (str, list), "check_duplicate_files": bool},
        required=("table", "files"),
        run=_add_files,
    ),
    "register_table": Procedure(
        arguments={**_TABLE, "metadata_file": str},
        required=("table", "metadata_file"),
        make=_register,
    ),
    "snapshot": Procedure(
        arguments={"source_table": str, "table": str, "location": str, "properties": dict},
        required=("source_table", "table"),
        make=_snapshot,
    ),
    "check": Procedure(arguments={**_TABLE, "deep": bool}, run=_check),
}

INSTEAD: Final[Mapping[str, str]] = {
    "migrate": "register_table takes an Iceberg table into the catalog, and frazil upgrade, or "
    "table.upgrade(), makes it one of format version 4 in place",
    "rewrite_position_delete_files": "a data file has one deletion vector at most; "
    "rewrite_data_files applies them",
    "rewrite_table_path": "paths in metadata are relative to the table: copy its folder, then "
    "register_table",
    "compute_table_stats": "the tree has statistics of every column; they are kept up to date by "
    "each commit",
    "compute_partition_stats": "the metadata table partitions has them",
    "create_changelog_view": "shop.orders.changes has the changes of shop.orders, and a view can "
    "be made of it",
}
"""Procedures of Iceberg that have no counterpart, and what there is."""
