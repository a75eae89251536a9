"""Credentials among the properties of a connection: hidden in a repr, left out of a pickle.

A pickle can end on a disk: a shuffle file of Spark, a cache, a queue. It names the credentials it
needs instead. The process that loads it has them already, or a carrier brings them by a way that
stays in memory; otherwise the store's client looks in the environment there.
"""

from __future__ import annotations

import re
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Final

from frazil.errors import redacted
from frazil.value_classes import dataclass

Fetch = Callable[[str], Mapping[str, str] | None]
"""Finds credentials by their name, in the process that needs them; pickled by its own name."""

_SECRET_WORDS: Final = frozenset(
    {"secret", "password", "passwd", "token", "credential", "credentials", "sas"}
)
_SECRET_PAIRS: Final = re.compile(
    r"(access|account|private|api|shared)[-_.]?key|connection[-_.]?string"
)
_PROVIDER: Final = "credentials-provider"
_MAX_RECEIVED: Final = 256
_PASSWORD: Final = re.compile(r"(://[^:/@\s]*):[^\s]*(?=@)|(?<=[?&])(?:ssl)?password=[^&]*&?")


def is_credential(key: str) -> bool:
    """Whether a property of this name holds a secret, by Iceberg's and the clouds' naming."""
    lowered = key.lower()
    words = re.split(r"[.\-_]", lowered)
    return bool(_SECRET_WORDS.intersection(words) or _SECRET_PAIRS.search(lowered))


def masked(properties: Mapping[str, str]) -> dict[str, str]:
    """Properties fit to be shown: the values of credentials are hidden."""
    return {
        key: "***" if is_credential(key) else redacted(value) for key, value in properties.items()
    }


@dataclass(frozen=True, slots=True)
class Carrier:
    """A way for credentials to other processes that touches no disk."""

    send: Callable[[str, Mapping[str, str]], None]
    fetch: Fetch


class _Known:
    """The credentials this process has sent or received, by name. A name tells nothing of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sent: dict[str, dict[str, str]] = {}
        self._received: OrderedDict[str, dict[str, str]] = OrderedDict()
        self.carriers: list[Carrier] = []

    def name_of(self, secrets: dict[str, str]) -> str:
        with self._lock:
            names = (name for name, sent in self._sent.items() if sent == secrets)
            name = next(names, None) or uuid.uuid4().hex
            self._sent[name] = secrets
            carriers = list(self.carriers)
        for carrier in carriers:
            carrier.send(name, secrets)
        return name

    def receive(self, name: str, secrets: Mapping[str, str]) -> None:
        with self._lock:
            self._received[name] = dict(secrets)
            self._received.move_to_end(name)
            while len(self._received) > _MAX_RECEIVED:
                self._received.popitem(last=False)

    def find(self, name: str, fetches: tuple[Fetch, ...]) -> Mapping[str, str]:
        with self._lock:
            secrets = self._sent.get(name) or self._received.get(name)
        if secrets is not None:
            return secrets
        for fetch in fetches:
            credential = fetch(name)
            if credential is not None:
                self.receive(name, credential)
                return credential
        return {}

    def fetches(self) -> tuple[Fetch, ...]:
        return tuple(carrier.fetch for carrier in self.carriers)


_known: Final = _Known()


def carry_by(carrier: Carrier) -> None:
    """Send the credentials of every pickle that is made from now on by this carrier, too."""
    if carrier not in _known.carriers:
        _known.carriers.append(carrier)


class ConnectionProperties(dict[str, str]):
    """Properties whose repr hides credentials and whose pickle leaves them out."""

    def __repr__(self) -> str:
        return repr(masked(self))

    def __reduce__(self) -> tuple[Any, ...]:
        secrets = secrets_of(self)
        if not secrets:
            return (ConnectionProperties, (dict(self),))
        public = {
            key: without_password(value)
            for key, value in self.items()
            if key not in secrets or not _holds_credential(key)
        }
        return (_restored, (public, _known.name_of(secrets), _known.fetches()))


class Carried:
    """Credentials whose pickle holds them, for one that stays in memory; those of other values
    that are loaded after it in the same pickle are then known."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._secrets = secrets_of(properties)

    def __repr__(self) -> str:
        return "Carried(***)"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_carried, (_known.name_of(self._secrets), self._secrets))


def secrets_of(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that hold credentials, and addresses that hold a password."""
    return {
        key: value
        for key, value in properties.items()
        if _holds_credential(key) or without_password(value) != value
    }


def _holds_credential(key: str) -> bool:
    """A provider's name is none: it tells where to ask for credentials."""
    return is_credential(key) and not key.endswith(_PROVIDER)


def without_password(uri: str) -> str:
    """A database's URI without its password: the client then looks in the environment.

    >>> without_password("postgresql://me:hunter2@db/shop?password=x&sslmode=require")
    'postgresql://me@db/shop?sslmode=require'
    """
    public = _PASSWORD.sub(lambda match: match[1] or "", uri)
    return uri if public == uri else public.rstrip("?&")


def _restored(
    public: dict[str, str], name: str, fetches: tuple[Fetch, ...]
) -> ConnectionProperties:
    return ConnectionProperties({**public, **_known.find(name, fetches)})


def _carried(name: str, secrets: dict[str, str]) -> Carried:
    _known.receive(name, secrets)
    return Carried(secrets)
