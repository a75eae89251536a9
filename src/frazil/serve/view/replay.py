"""Requests that were answered before, by their idempotency key.

A client that lost an answer sends the same request with the same key and gets the answer it lost.
Answers are kept as notes of the catalog, so that any server process gives them. Commits of
snapshots need no key: the snapshot's id tells that they landed.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from threading import Lock

from frazil.catalog.notes import Notes
from frazil.serve.exchange import Request, Response
from frazil.serve.rest_errors import RestError

HEADER = "idempotency-key"
LIFETIME_S = 30 * 60
LIFETIME = "PT30M"
SWEEP_S = 60
"""How often answers past their lifetime are looked for."""
_PREFIX = "request:"


class Replay:
    """Answers of one catalog."""

    def __init__(self, notes: Notes, *, now: Callable[[], float] = time.time) -> None:
        self._notes = notes
        self._now = now
        self._swept = now()
        self._lock = Lock()
        self._busy: dict[str, Lock] = {}

    def answer(
        self, call: Request, handle: Callable[[], Response], again: Callable[[], Response] | None
    ) -> Response:
        """The answer to a request, from before if it was answered. With `again`, which makes the
        answer of a repeated request, only the fact is kept."""
        key = call.headers.get(HEADER)
        if key is None:
            return handle()
        name = f"{_PREFIX}{key}"
        with self._lock:
            busy = self._busy.setdefault(name, Lock())
        try:
            with busy:
                return self._noted_response(name, call, again) or self._kept(
                    name, call, handle, keeps_body=again is None
                )
        finally:
            with self._lock:
                self._busy.pop(name, None)

    def _noted_response(
        self, name: str, call: Request, again: Callable[[], Response] | None
    ) -> Response | None:
        note = self._notes.get([name]).get(name)
        if note is None:
            return None
        document = json.loads(note)
        if document["request"] != _fingerprint(call):
            raise RestError(
                422,
                "UnprocessableEntityException",
                "the idempotency key was used for another request",
            )
        if again is not None and document["status"] == 200:
            return again()
        body = None if document["body"] is None else document["body"].encode()
        return Response(status=document["status"], body=body)

    def _kept(
        self, name: str, call: Request, handle: Callable[[], Response], *, keeps_body: bool
    ) -> Response:
        answer = handle()
        if answer.status < 300:
            body = answer.encoded() if keeps_body else b""
            text = body.decode() or None
            note = {
                "request": _fingerprint(call),
                "status": answer.status,
                "body": text,
                "at": self._now(),
            }
            self._notes.add({name: json.dumps(note)})
            self._forget_old()
        return answer

    def _forget_old(self) -> None:
        if self._now() - self._swept < SWEEP_S:
            return
        self._swept = self._now()
        before = self._now() - LIFETIME_S
        replays = self._notes.below(_PREFIX)
        self._notes.remove(
            [key for key, note in replays.items() if json.loads(note)["at"] < before]
        )


def _fingerprint(call: Request) -> str:
    sender = "" if call.principal is None else call.principal.name
    digest = hashlib.sha256(f"{call.method} {call.path}\n{sender}\n".encode())
    digest.update(call.body)
    return digest.hexdigest()
