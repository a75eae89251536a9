"""Scan planning over HTTP: plan, result, tasks, cancellation.

A plan is answered at once with its first files; tokens say where the rest is. A token holds all
there is to know of a plan, so that every server of a catalog can answer it and a plan that nobody
fetches costs nothing. Cancelling makes this server refuse the plan's tokens; there is nothing else
to give back.
"""

from __future__ import annotations

import base64
import binascii
import re
import uuid
import zlib
from typing import Any, Final

import msgspec

from frazil.commit.handle import TableHandle
from frazil.errors import InvalidInput
from frazil.legacy.publish import published_notes
from frazil.serve.access.rights import PATH_READER
from frazil.serve.exchange import NO_CONTENT, Endpoint, Handler, Request, Response, decoded
from frazil.serve.limits import (
    MAX_FILTER_DEPTH,
    MAX_JSON_DEPTH,
    MAX_PLAN_BYTES,
    MAX_PLAN_FILES,
    MAX_PLAN_ID,
    MAX_PLAN_STATE_BYTES,
    MIN_PLAN_FILES,
)
from frazil.serve.plan import plan_files
from frazil.serve.plan.plan_files import FileShapes
from frazil.serve.plan.planning import part_of, snapshot_of
from frazil.serve.rest import table_endpoints
from frazil.serve.rest_errors import RestError, bad_request
from frazil.serve.service import Service
from frazil.serve.view.published_view import head_of, published_version
from frazil.serve.wire import wire_plans
from frazil.serve.wire.wire_plans import Planned, PlanState, Tasks

PLAN = f"{table_endpoints.ONE}/plan"
RESULT = f"{PLAN}/{{plan-id}}"
TASKS = f"{table_endpoints.ONE}/tasks"
_MAX_DEPTH: Final = MAX_FILTER_DEPTH + MAX_JSON_DEPTH
_LARGE: Final = "large-"
_PLAN: Final = re.compile(r"[0-9a-f]{32}")
_PYICEBERG: Final = "pyiceberg/"


def plan_scan(service: Service, call: Request) -> Response:
    """POST plan: the first files, and tokens for the others."""
    request = decoded(call.body, wire_plans.PlanScan, max_depth=_MAX_DEPTH)
    handle = service.table(call.identifier())._handle
    try:
        state = _state(handle, request)
        if state is None:
            empty = Planned(
                status="completed", plan_id=str(uuid.uuid4()), plan_tasks=[], file_scan_tasks=[]
            )
            return Response(body=empty)
        return _planned(service, call, handle, state)
    except InvalidInput as error:
        raise bad_request(f"Cannot plan: {error}") from error


def plan_result(service: Service, call: Request) -> Response:
    """GET plan/{plan-id}: the answer that POST gave, made again."""
    handle = service.table(call.identifier())._handle
    state = _decoded(call.parameters["plan-id"])
    if state is None or _is_cancelled(service, handle, state):
        raise RestError(404, "NoSuchPlanIdException", "no such plan; plan the scan again")
    try:
        return _planned(service, call, handle, state)
    except InvalidInput as error:
        raise RestError(404, "NoSuchPlanIdException", f"no such plan: {error}") from error


def cancel_plan(service: Service, call: Request) -> Response:
    """DELETE plan/{plan-id}: of this table, and of no other. What is no plan is nothing to keep."""
    handle = service.table(call.identifier())._handle
    name = call.parameters["plan-id"]
    state = _decoded(name)
    plan = name.removeprefix(_LARGE) if state is None else state.plan
    if _PLAN.fullmatch(plan):
        service.cancelled_plans.add(_kept_as(handle, plan))
    return NO_CONTENT


def _is_cancelled(service: Service, handle: TableHandle, state: PlanState) -> bool:
    return _kept_as(handle, state.plan) in service.cancelled_plans


def _kept_as(handle: TableHandle, plan: str) -> str:
    return f"{handle.metadata.table_uuid} {plan}"


def fetch_tasks(service: Service, call: Request) -> Response:
    """POST tasks: the files that a token stands for, and tokens for what is still left."""
    request = call.decode(wire_plans.FetchTasks)
    handle = service.table(call.identifier())._handle
    state = _decoded(request.plan_task)
    if state is None or _is_cancelled(service, handle, state):
        raise RestError(404, "NoSuchPlanTaskException", "no such plan task; plan the scan again")
    try:
        return Response(body=_tasks(service, call, handle, state))
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


def _planned(service: Service, call: Request, handle: TableHandle, state: PlanState) -> Response:
    tasks = _tasks(service, call, handle, state)
    name = _encoded(state)
    return Response(
        body=Planned(
            status="completed",
            plan_id=name if len(name) <= MAX_PLAN_ID else f"{_LARGE}{state.plan}",
            plan_tasks=tasks.plan_tasks,
            file_scan_tasks=tasks.file_scan_tasks,
            delete_files=tasks.delete_files or msgspec.UNSET,
        )
    )


def _tasks(service: Service, call: Request, handle: TableHandle, state: PlanState) -> Tasks:
    residual = msgspec.json.encode(True if state.filter is None else state.filter)
    ids = plan_files.stats_ids(handle, state.stats_fields, case_sensitive=state.case_sensitive)
    a_file = 400 + len(residual) + 100 * len(ids)
    part = part_of(
        handle,
        state,
        stats_keys=plan_files.stats_keys(ids),
        max_files=max(MIN_PLAN_FILES, min(MAX_PLAN_FILES, MAX_PLAN_BYTES // a_file)),
    )
    positions = None
    version = max(2, published_version(handle.metadata, call.format_version))
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
    if len(residual) > MAX_PLAN_ID and len(rest) > 1:  # tokens repeat the filter: give out one
        rest = (msgspec.structs.replace(rest[0], end=rest[-1].end),)
    return shapes.tasks(part, [_encoded(task) for task in rest])


def _encoded(state: PlanState) -> str:
    packed = zlib.compress(msgspec.json.encode(state), 1)
    return base64.urlsafe_b64encode(packed).decode("ascii").rstrip("=")


def _decoded(text: str) -> PlanState | None:
    """The state that a token stands for; None when it is no token."""
    try:
        packed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        unpacking: Any = zlib.decompressobj()
        raw = unpacking.decompress(packed, MAX_PLAN_STATE_BYTES)
        if unpacking.unconsumed_tail:
            return None
        return decoded(raw, PlanState, max_depth=_MAX_DEPTH)
    except (binascii.Error, ValueError, zlib.error, RestError):
        return None


def _plan(method: str, template: str, handler: Handler) -> Endpoint:
    return Endpoint(method, template, handler, PATH_READER, lane="queries")


ENDPOINTS = (
    _plan("POST", PLAN, plan_scan),
    _plan("GET", RESULT, plan_result),
    Endpoint("DELETE", RESULT, cancel_plan, PATH_READER),
    _plan("POST", TASKS, fetch_tasks),
)
