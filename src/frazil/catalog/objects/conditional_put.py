"""One conditional put, and certainty about what became of it.

Any error of such a put, "exists already" and "precondition failed" too, may be the answer to a
request that has had its effect: a reply was lost, or the client repeated the request. So after
every error the object is read. What is written holds a mark that nothing else holds: an object with
the mark proves that the put landed; an object that was replaced by others proves that it has not
and never will, because the version it names does not come back. If neither is so, the same request
is sent again: it has its effect at most once.
"""

from __future__ import annotations

import itertools
import logging
import random
import secrets
import time
from collections.abc import Callable

from frazil.errors import AlreadyExists, CatalogError, NotFound, StorageError
from frazil.storage.base import (
    ConditionalStore,
    ObjectVersion,
    PreconditionFailed,
    StoreBusy,
    StoredObject,
)
from frazil.value_classes import frozen

_log = logging.getLogger(__name__)

MAX_BUSY_S = 30.0
"""How long a store may ask to try again later."""
MAX_FAILURES = 4
_MIN_WAIT_S = 0.01
_MAX_WAIT_S = 1.0


@frozen
class Written:
    """The put has landed; `version` is None when others have replaced the object since."""

    version: ObjectVersion | None


@frozen
class Refused:
    """The put has not landed and will not; `current` is what is there instead, None if nothing."""

    current: StoredObject | None


class OutcomeUnknown(CatalogError):
    """Whether a put landed could not be found out."""


def new_mark() -> str:
    """A text that no other version of an object holds."""
    return secrets.token_hex(8)


def read(store: ConditionalStore, path: str) -> StoredObject | None:
    """An object, or None when there is none."""
    try:
        return store.get(path)
    except NotFound:
        return None


def put(
    store: ConditionalStore,
    path: str,
    data: bytes,
    *,
    over: ObjectVersion | None,
    mark: str,
    sleep: Callable[[float], None] = time.sleep,
    chance: Callable[[], float] = random.random,
) -> Written | Refused:
    """Create an object (`over` is None), or replace one version of it. OutcomeUnknown when the
    store cannot be asked."""
    deadline = time.monotonic() + MAX_BUSY_S
    failures = 0
    wait_s = _MIN_WAIT_S
    for attempt in itertools.count():
        is_first = attempt == 0
        try:
            if over is None:
                return Written(version=store.put_new(path, data))
            return Written(version=store.put_if(path, data, over))
        except (AlreadyExists, StorageError) as error:
            failure = error
        try:
            current = read(store, path)
        except StorageError as error:
            _log.debug("%s: cannot be read after a failed put: %s", path, error)
        else:
            # With our mark in the object a put has landed, whatever its reply said: putting again
            # would overwrite what others have built on it.
            if current is not None and mark.encode() in current.data:
                is_newest = current.data == data
                return Written(version=current.version if is_newest else None)
            if _is_replaced(current, over):
                return Refused(current=current)
            if is_first and _is_answer(failure):
                raise failure  # the store said no, for a reason that waiting does not change
        is_wait = isinstance(failure, StoreBusy | PreconditionFailed | AlreadyExists)
        failures += not is_wait  # waiting for a busy store is no failure; the deadline bounds it
        if failures == MAX_FAILURES or time.monotonic() > deadline:
            raise OutcomeUnknown(
                f"{path}: cannot tell whether it was written: {failure}"
            ) from failure
        sleep(wait_s * (0.5 + chance()))
        wait_s = min(2 * wait_s, _MAX_WAIT_S)
    raise AssertionError


def _is_answer(failure: AlreadyExists | StorageError) -> bool:
    """Whether the store refused the request itself: no right to write, no such bucket."""
    if isinstance(failure, StoreBusy | PreconditionFailed | AlreadyExists):
        return False
    cause = failure.__cause__
    if not isinstance(cause, Exception):
        return False
    from frazil.storage.store_failures import is_refusal

    return is_refusal(cause)


def _is_replaced(current: StoredObject | None, over: ObjectVersion | None) -> bool:
    if over is None:
        return current is not None
    return current is None or current.version != over
