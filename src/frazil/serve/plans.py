"""Scan planning over HTTP: plan, result, tasks, cancellation.

A plan is answered at once with its first files; tokens say where the rest is. A token holds all
there is to know of a plan, so that every server of a catalog can answer it and a plan that nobody
fetches costs nothing. Cancelling makes this server refuse the plan's tokens; there is nothing else
to give back.
"""

from __future__ import annotations

import base64
import binascii
import uuid
import zlib
from typing import Any, Final

import msgspec

from frazil.commit.handle import TableHandle
from frazil.errors import InvalidInput
from frazil.legacy import published_notes
from frazil.serve import plan_files, table_endpoints, wire_plans
from frazil.serve.exchange import NO_CONTENT, Answer, Call, Endpoint
from frazil.serve.facade import head_of, shown_version
from frazil.serve.plan_files import FileShapes
from frazil.serve.planning import MAX_FILES, part_of, snapshot_of
from frazil.serve.rest_errors import RestError, bad_request
from frazil.serve.service import Service
from frazil.serve.wire_plans import Planned, PlanState, Tasks

PLAN = f"{table_endpoints.ONE}/plan"
RESULT = f"{PLAN}/{{plan-id}}"
TASKS = f"{table_endpoints.ONE}/tasks"
LONGEST_ID: Final = 2000
"""Characters of a plan id, which is part of an address; a longer plan is fetched by tokens only."""
MAX_STATE_BYTES: Final = 16 << 20
MAX_PART_BYTES: Final = 8 << 20
_SMALLEST_PART: Final = 50
_LARGE: Final = "large-"
_PYICEBERG: Final = "pyiceberg/"


def plan_scan(service: Service, call: Call) -> Answer:
    """POST plan: the first files, and tokens for the others."""
    asked = call.decode(wire_plans.PlanScan)
    handle = service.table(call.identifier())._handle
    try:
        state = _state(handle, asked)
        if state is None:
            empty = Planned(
                status="completed", plan_id=str(uuid.uuid4()), plan_tasks=[], file_scan_tasks=[]
            )
            return Answer(body=empty)
        return _planned(service, call, handle, state)
    except InvalidInput as error:
        raise bad_request(f"Cannot plan: {error}") from error


def plan_result(service: Service, call: Call) -> Answer:
    """GET plan/{plan-id}: the answer that POST gave, made again."""
    handle = service.table(call.identifier())._handle
    state = _decoded(call.parameters["plan-id"])
    if state is None or state.plan in service.cancelled_plans:
        raise RestError(404, "NoSuchPlanIdException", "no such plan; plan the scan again")
    try:
        return _planned(service, call, handle, state)
    except InvalidInput as error:
        raise RestError(404, "NoSuchPlanIdException", f"no such plan: {error}") from error


def cancel_plan(service: Service, call: Call) -> Answer:
    """DELETE plan/{plan-id}."""
    service.table(call.identifier())
    name = call.parameters["plan-id"]
    state = _decoded(name)
    service.cancelled_plans.add(name.removeprefix(_LARGE) if state is None else state.plan)
    return NO_CONTENT


def fetch_tasks(service: Service, call: Call) -> Answer:
    """POST tasks: the files that a token stands for, and tokens for what is still left."""
    asked = call.decode(wire_plans.FetchTasks)
    handle = service.table(call.identifier())._handle
    state = _decoded(asked.plan_task)
    if state is None or state.plan in service.cancelled_plans:
        raise RestError(404, "NoSuchPlanTaskException", "no such plan task; plan the scan again")
    try:
        return Answer(body=_tasks(service, call, handle, state))
    except InvalidInput as error:
        raise RestError(404, "NoSuchPlanTaskException", f"no such plan task: {error}") from error


def _state(handle: TableHandle, asked: wire_plans.PlanScan) -> PlanState | None:
    """What to plan; None when the table has no snapshot."""
    if asked.start_snapshot_id is not None or asked.end_snapshot_id is not None:
        if asked.snapshot_id is not None:
            raise InvalidInput("a scan has a snapshot-id or a range of snapshots, not both")
        if asked.start_snapshot_id is None or asked.end_snapshot_id is None:
            raise InvalidInput("a range of snapshots needs start-snapshot-id and end-snapshot-id")
    chosen = asked.snapshot_id if asked.end_snapshot_id is None else asked.end_snapshot_id
    if chosen is None:
        tip = handle.tip()
        if tip is None:
            return None
        chosen = int(tip.snapshot_id)
    snapshot_of(handle, chosen)
    return PlanState(
        plan=uuid.uuid4().hex,
        snapshot_id=chosen,
        filter=asked.filter,
        case_sensitive=asked.case_sensitive,
        use_snapshot_schema=asked.use_snapshot_schema,
        start_snapshot_id=asked.start_snapshot_id,
        stats_fields=asked.stats_fields or [],
    )


def _planned(service: Service, call: Call, handle: TableHandle, state: PlanState) -> Answer:
    tasks = _tasks(service, call, handle, state)
    name = _encoded(state)
    return Answer(
        body=Planned(
            status="completed",
            plan_id=name if len(name) <= LONGEST_ID else f"{_LARGE}{state.plan}",
            plan_tasks=tasks.plan_tasks,
            file_scan_tasks=tasks.file_scan_tasks,
            delete_files=tasks.delete_files or msgspec.UNSET,
        )
    )


def _tasks(service: Service, call: Call, handle: TableHandle, state: PlanState) -> Tasks:
    residual = msgspec.json.encode(True if state.filter is None else state.filter)
    ids = plan_files.stats_ids(handle, state.stats_fields, case_sensitive=state.case_sensitive)
    a_file = 400 + len(residual) + 100 * len(ids)
    part = part_of(
        handle,
        state,
        stats_keys=plan_files.stats_keys(ids),
        max_files=max(_SMALLEST_PART, min(MAX_FILES, MAX_PART_BYTES // a_file)),
    )
    positions = None
    version = max(2, shown_version(handle.metadata, call.format_version))
    if version < 3:
        snapshot = snapshot_of(handle, state.snapshot_id)
        service.facade.list_of(handle, snapshot, version)  # writes what is not there yet
        positions = published_notes.positions(head_of(handle).notes)
    shapes = FileShapes(
        handle=handle,
        residual=msgspec.Raw(residual),
        stats=ids,
        positions=positions,
        omits_nulls=call.headers.get("user-agent", "").lower().startswith(_PYICEBERG),
    )
    rest = part.rest
    if len(residual) > LONGEST_ID and len(rest) > 1:  # tokens repeat the filter: give out one
        rest = (msgspec.structs.replace(rest[0], end=rest[-1].end),)
    return shapes.tasks(part, [_encoded(each) for each in rest])


def _encoded(state: PlanState) -> str:
    packed = zlib.compress(msgspec.json.encode(state), 1)
    return base64.urlsafe_b64encode(packed).decode("ascii").rstrip("=")


def _decoded(text: str) -> PlanState | None:
    """The state that a token stands for; None when it is no token."""
    try:
        packed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        unpacking: Any = zlib.decompressobj()
        raw = unpacking.decompress(packed, MAX_STATE_BYTES)
        if unpacking.unconsumed_tail:
            return None
        return msgspec.json.decode(raw, type=PlanState)
    except (binascii.Error, ValueError, zlib.error, msgspec.DecodeError):
        return None


ENDPOINTS = (
    Endpoint(method="POST", template=PLAN, handler=plan_scan),
    Endpoint(method="GET", template=RESULT, handler=plan_result),
    Endpoint(method="DELETE", template=RESULT, handler=cancel_plan),
    Endpoint(method="POST", template=TASKS, handler=fetch_tasks),
)
