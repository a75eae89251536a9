"""Changes that the page offers: each is previewed, and done only when that very preview is
confirmed.

A confirmation is a signature over the action, its parameters and the version of the table. When
the table has moved on, it is refused, so that nobody confirms what they have not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import takewhile
from typing import Any

import msgspec

from frazil.commit.result import CommitResult
from frazil.errors import AlreadyExists, InvalidInput
from frazil.format.checks import check_ref_name
from frazil.format.metadata.metadata import MAIN, RefKind, Snapshot
from frazil.format.metadata.summary_totals import live_rows, number
from frazil.maintenance.compact import files_due
from frazil.maintenance.removal.expire import Expired
from frazil.maintenance.removal.orphans import Orphans
from frazil.maintenance.rewrite_manifests import leaves_due
from frazil.serve.exchange import Request, Response
from frazil.serve.explorer.pages.health_page import LABELS
from frazil.serve.rest_errors import bad_request, conflict
from frazil.serve.service import Service
from frazil.table import Table
from frazil.table.refs import ancestors, is_ancestor
from frazil.text_format import counted, size


class ActionRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request: parameters, and the confirmation of a preview."""

    params: dict[str, str | int | None] = {}
    confirm: str | None = None


class Fact(msgspec.Struct, frozen=True):
    """Something that an action changes."""

    label: str
    before: str | None = None
    after: str | None = None


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """What an action would do. `nothing` says that there is nothing to do."""

    title: str
    sentence: str
    facts: tuple[Fact, ...] = ()
    warnings: tuple[str, ...] = ()
    nothing: bool = False


Params = Mapping[str, str | int | None]
Outcome = CommitResult | Expired | Orphans | None


class PreviewedAction(msgspec.Struct, frozen=True):
    """How an action is previewed and done, the parameters it takes, and whether it only moves
    branches and tags."""

    preview: Callable[[Table, Params], Preview]
    run: Callable[[Table, Params], Outcome]
    takes: tuple[str, ...] = ()
    is_of_refs: bool = False


def post(service: Service, call: Request) -> Response:
    """POST actions/<action>: a preview, or with `confirm` the action itself."""
    name = call.parameters["action"]
    action = ACTIONS.get(name)
    if action is None:
        raise bad_request(f"{name!r} is not an action; there are {', '.join(ACTIONS)}")
    request = call.decode(ActionRequest)
    unknown = sorted(set(request.params) - set(action.takes))
    if unknown:
        raise bad_request(f"{name} takes no parameter {', '.join(unknown)}")
    table = service.table(call.identifier())
    token = _signature(service, call, table, name, request.params)
    if request.confirm is None:
        preview = action.preview(table, request.params)
        body = {**msgspec.to_builtins(preview), "preview": True, "action": name, "confirm": token}
        return Response(body=body)
    if request.confirm != token:
        raise conflict(
            f"{table.name} has changed since the preview, or the preview was of something else; "
            "look at it again"
        )
    return Response(
        body={"preview": False, "done": True, "action": name, **_outcome(action, table, request)}
    )


def _outcome(action: PreviewedAction, table: Table, request: ActionRequest) -> dict[str, Any]:
    title = action.preview(table, request.params).title if action.is_of_refs else ""
    outcome = action.run(table, request.params)
    snapshot = outcome.snapshot_id if isinstance(outcome, CommitResult) else None
    return {
        "sentence": f"Done: {title}." if title else _capital(str(outcome)),
        "committed": not isinstance(outcome, CommitResult) or outcome.committed,
        "snapshot": None if snapshot is None else str(snapshot),
    }


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _signature(service: Service, call: Request, table: Table, name: str, params: Params) -> str:
    principal = "" if call.principal is None else call.principal.name
    state = table._handle.state
    encoded = msgspec.json.encode(sorted((key, params[key]) for key in params)).decode()
    uuid, version = str(state.metadata.table_uuid), str(state.version)
    return service.guard.signed("action", principal, uuid, version, name, encoded)


# --- parameters ----------------------------------------------------------------------------------


def _text(params: Params, name: str, default: str | None = None) -> str:
    value = params.get(name, default)
    value = default if value is None or value == "" else value
    if value is None:
        raise bad_request(f"the parameter {name!r} is missing")
    return str(value)


def _on(table: Table, params: Params) -> Table:
    name = _text(params, "branch", MAIN)
    return table if name == table.branch_name else table.branch(name)


def _age(params: Params) -> int | None:
    value = params.get("max_age_ms")
    if value is None or isinstance(value, int):
        return value
    raise bad_request(f"max_age_ms is {value!r}; expected a number")


def _older_than(params: Params) -> str | None:
    """An age such as `7 days`, or None for what the table's settings say."""
    return _text(params, "older_than") if params.get("older_than") else None


# --- branches and tags ---------------------------------------------------------------------------


def _shape(snapshot: Snapshot | None) -> dict[str, str]:
    summary = {} if snapshot is None else snapshot.summary
    rows = live_rows(snapshot)
    files = 0 if snapshot is None else number(summary, "total-data-files")
    return {
        "Rows": "unknown" if rows is None else f"{rows:,}",
        "Data files": "unknown" if files is None else f"{files:,}",
        "Snapshot": "none" if snapshot is None else str(snapshot.snapshot_id),
    }


def _facts(before: Snapshot | None, after: Snapshot | None) -> tuple[Fact, ...]:
    old, new = _shape(before), _shape(after)
    return tuple(Fact(label=label, before=old[label], after=new[label]) for label in old)


def _between(table: Table, low: Snapshot | None, high: Snapshot | None) -> int:
    """Commits of the history of `high` that come after `low`."""
    end = None if low is None else low.snapshot_id
    walk = ancestors(table._handle, high)
    return sum(1 for _ in takewhile(lambda snapshot: snapshot.snapshot_id != end, walk))


def _schema_warning(table: Table, target: Snapshot) -> tuple[str, ...]:
    if target.schema_id in (None, table.metadata.current_schema_id):
        return ()
    return ("The schema stays as it is now; columns added later are null in these rows.",)


def _move_preview(table: Table, params: Params, *, verb: str, within: bool) -> Preview:
    branch = _on(table, params)
    target = branch.snapshot(_text(params, "to"))
    now = branch.current_snapshot()
    if within and not is_ancestor(branch._handle, target, now):
        raise InvalidInput(
            f"snapshot {target.snapshot_id} is not in the history of {branch.branch_name}"
        )
    same = now is not None and now.snapshot_id == target.snapshot_id
    undone = _between(table, target, now) if within else None
    what = f"Branch {branch.branch_name} {verb} snapshot {target.snapshot_id}"
    sentence = f"{what}."
    if undone and not same:
        sentence += (
            f" The last {counted(undone, 'commit')} will no longer be seen on {branch.branch_name}."
        )
    if same:
        sentence = f"Branch {branch.branch_name} points at that snapshot already."
    return Preview(
        title=what,
        sentence=sentence,
        facts=_facts(now, target),
        warnings=(
            *_schema_warning(table, target),
            "The snapshots stay until they expire, so this can be undone until then.",
        ),
        nothing=same,
    )


def _fast_forward(table: Table, params: Params) -> Preview:
    name = _text(params, "branch", MAIN)
    branch = table.branch(name)
    target = branch.snapshot(_text(params, "to"))
    now = branch.current_snapshot()
    if now is not None and not is_ancestor(table._handle, now, target):
        raise InvalidInput(
            f"{name} cannot be fast-forwarded to snapshot {target.snapshot_id}: it has commits "
            "that are not in that history"
        )
    gained = _between(table, now, target)
    return Preview(
        title=f"Fast-forward {name} to snapshot {target.snapshot_id}",
        sentence=f"Branch {name} takes up {counted(gained, 'commit')}."
        if gained
        else f"Branch {name} is there already.",
        facts=_facts(now, target),
        nothing=not gained,
    )


def _new_ref(table: Table, params: Params, kind: RefKind) -> Preview:
    name = _text(params, "name")
    check_ref_name(name)
    if name in table.metadata.refs:
        raise AlreadyExists(f"{table.name}: {name!r} already exists")
    at = table.snapshot(_text(params, "at", MAIN))
    keeps = "It keeps the snapshot from expiring" if kind is RefKind.TAG else "Commits can go to it"
    return Preview(
        title=f"Create the {kind.value} {name}",
        sentence=f"The {kind.value} {name} will point at snapshot {at.snapshot_id}. {keeps}.",
        facts=tuple(Fact(label=label, after=value) for label, value in _shape(at).items()),
    )


def _make_branch(table: Table, params: Params) -> Outcome:
    table.branch(_text(params, "name"), create=True, as_of=_text(params, "at", MAIN))
    return None


def _drop_ref(table: Table, params: Params) -> Preview:
    name = _text(params, "name")
    if name == MAIN:
        raise InvalidInput("the main branch cannot be removed")
    ref = table.metadata.ref(name)
    return Preview(
        title=f"Remove the {ref.kind.value} {name}",
        sentence=f"The {ref.kind.value} {name} is removed. Snapshots that nothing else names can "
        "expire.",
        facts=(Fact(label="Snapshot", before=str(ref.snapshot_id), after=None),),
    )


# --- care ----------------------------------------------------------------------------------------


def _compact(table: Table, params: Params) -> Preview:
    branch = _on(table, params)
    where = params.get("where")
    due = files_due(branch._handle, None if not where else str(where), branch=branch.branch_name)
    return Preview(
        title=LABELS["compact"],
        sentence=f"{counted(due.files, 'data file')} of {size(due.bytes)} "
        f"{'is' if due.files == 1 else 'are'} rewritten. No row changes."
        if due.files
        else "No data file is worth rewriting.",
        facts=(
            Fact(label="Files rewritten", after=f"{due.files:,}"),
            Fact(label="Rows copied", after=f"{due.rows:,}"),
            Fact(label="Bytes read", after=size(due.bytes)),
        ),
        nothing=not due.files,
    )


def _leaves(table: Table, params: Params, *, everything: bool) -> Preview:
    branch = _on(table, params)
    due = leaves_due(branch._handle, branch=branch.branch_name, everything=everything)
    title = LABELS["rewrite_manifests" if everything else "compact_metadata"]
    if due is None:
        return Preview(title=title, sentence="The tree needs no rewriting.", nothing=True)
    return Preview(
        title=title,
        sentence=f"{counted(len(due), 'leaf', 'leaves')} and the entries of the root are "
        "rewritten. No data file and no row changes.",
        facts=(Fact(label="Leaves rewritten", after=f"{len(due):,}"),),
    )


def _expire(table: Table, params: Params) -> Preview:
    expired = table.expire_snapshots(_older_than(params), dry_run=True)
    return Preview(
        title=LABELS["expire_snapshots"],
        sentence=f"{counted(len(expired.snapshot_ids), 'snapshot')} and "
        f"{counted(expired.file_count, 'file')} that nothing else references are deleted."
        if expired.snapshot_ids or expired.refs
        else "No snapshot is old enough to expire.",
        facts=(
            Fact(label="Snapshots", after=f"{len(expired.snapshot_ids):,}"),
            *(
                Fact(label=_capital(kind.replace("-", " ")), after=f"{len(names):,}")
                for kind, names in expired.files.items()
                if names
            ),
            *(Fact(label="Branch or tag removed", before=name) for name in expired.refs),
        ),
        warnings=("Expired snapshots cannot be brought back.",),
        nothing=not (expired.snapshot_ids or expired.refs),
    )


def _orphans(table: Table, params: Params) -> Preview:
    age = _older_than(params)
    orphans = table.remove_orphan_files(age, dry_run=True)
    verb = "is" if len(orphans.files) == 1 else "are"
    older = f"older than {age or 'three days'}"
    return Preview(
        title=LABELS["remove_orphan_files"],
        sentence=f"{counted(len(orphans.files), 'file')} of {size(orphans.total_bytes)}, {older} "
        f"and referenced by no snapshot, {verb} deleted."
        if orphans.files
        else f"No orphan file is {older}.",
        facts=(
            Fact(label="Files", after=f"{len(orphans.files):,}"),
            Fact(label="Bytes", after=size(orphans.total_bytes)),
            Fact(label="Younger ones, kept", after=f"{orphans.young:,}"),
        ),
        warnings=("Deleted files cannot be brought back.",),
        nothing=not orphans.files,
    )


ACTIONS: Mapping[str, PreviewedAction] = {
    "rollback": PreviewedAction(
        partial(_move_preview, verb="goes back to", within=True),
        lambda table, p: _on(table, p).rollback(_text(p, "to")),
        ("to", "branch"),
        True,
    ),
    "set_current": PreviewedAction(
        partial(_move_preview, verb="will point at", within=False),
        lambda table, p: _on(table, p).set_current(_text(p, "to")),
        ("to", "branch"),
        True,
    ),
    "fast_forward": PreviewedAction(
        _fast_forward,
        lambda table, p: table.fast_forward(_text(p, "branch", MAIN), to=_text(p, "to")),
        ("branch", "to"),
        True,
    ),
    "tag": PreviewedAction(
        partial(_new_ref, kind=RefKind.TAG),
        lambda table, p: table.tag(_text(p, "name"), _text(p, "at", MAIN), max_age_ms=_age(p)),
        ("name", "at", "max_age_ms"),
        True,
    ),
    "branch": PreviewedAction(
        partial(_new_ref, kind=RefKind.BRANCH), _make_branch, ("name", "at"), True
    ),
    "drop_ref": PreviewedAction(
        _drop_ref, lambda table, p: table.drop_ref(_text(p, "name")), ("name",), True
    ),
    "compact": PreviewedAction(
        _compact,
        lambda table, p: _on(table, p).compact(_text(p, "where") if p.get("where") else None),
        ("branch", "where"),
    ),
    "compact_metadata": PreviewedAction(
        partial(_leaves, everything=False),
        lambda table, p: _on(table, p).compact_metadata(),
        ("branch",),
    ),
    "rewrite_manifests": PreviewedAction(
        partial(_leaves, everything=True),
        lambda table, p: _on(table, p).rewrite_manifests(),
        ("branch",),
    ),
    "expire_snapshots": PreviewedAction(
        _expire, lambda table, p: table.expire_snapshots(_older_than(p)), ("older_than",)
    ),
    "remove_orphan_files": PreviewedAction(
        _orphans, lambda table, p: table.remove_orphan_files(_older_than(p)), ("older_than",)
    ),
}
