"""Who may do what: bearer tokens from a file, or JSON web tokens of an identity provider.

Both end as a `Principal` with rules. A rule gives `read` or `write` on a namespace and all below
it, or on everything (`*`). Writing includes reading. Tokens are compared as hashes; neither tokens
nor hashes reach a log or a message.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import time
import tomllib
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

from frazil.catalog.names import Namespace, undotted
from frazil.errors import InvalidInput
from frazil.serve.rest_errors import RestError
from frazil.value_classes import dataclass, frozen

log = logging.getLogger("frazil.serve")

Right = Literal["read", "write"]
EVERYTHING = "*"
CLAIM = "frazil"
KEYS_LIVE_S = 300
KEYS_REST_S = 10
"""How long the keys are not asked for again because of a token whose key is not known."""
MIN_REST_S, MAX_REST_S = 1.0, 60.0
"""How long a provider that did not answer is left alone: at first, and at most."""
FETCH_S = 5
MAX_KEYS_BYTES = 1 << 20
_ALGORITHMS = ["RS256", "RS384", "RS512", "ES256", "ES384", "PS256", "EdDSA"]


@frozen
class Rule:
    """A right on a namespace; None is everything."""

    namespace: Namespace | None
    right: Right

    @staticmethod
    def parse(text: str) -> Rule:
        """From `read:shop`, `write:shop.eu` or `write:*`."""
        right, colon, where = text.partition(":")
        if not colon or not where or right not in ("read", "write"):
            raise InvalidInput(f"rule {text!r}; expected read:<namespace> or write:<namespace>")
        chosen: Right = "write" if right == "write" else "read"
        return Rule(namespace=None if where == EVERYTHING else undotted(where), right=chosen)

    def allows(self, right: Right, namespace: Namespace | None) -> bool:
        """Whether it gives a right on a namespace; None asks for what concerns no namespace."""
        if right == "write" and self.right != "write":
            return False
        if self.namespace is None or namespace is None:
            return self.namespace is None or right == "read"
        return namespace[: len(self.namespace)] == self.namespace


@frozen
class Principal:
    """Somebody whose token is known."""

    name: str
    rules: tuple[Rule, ...]

    def check(self, right: Right, namespaces: Sequence[Namespace | None]) -> None:
        """403 unless a rule gives the right on every namespace."""
        for namespace in namespaces:
            if not any(rule.allows(right, namespace) for rule in self.rules):
                where = "the catalog" if namespace is None else ".".join(namespace)
                raise RestError(403, "ForbiddenException", f"{self.name} may not {right} {where}")

    def may_write_everything(self) -> bool:
        """Whether nothing in the catalog is closed to it."""
        return any(rule.allows("write", None) for rule in self.rules)

    def may_write(self, namespace: Namespace) -> bool:
        """Whether what is in a namespace can be changed."""
        return any(rule.allows("write", namespace) for rule in self.rules)

    def may_see(self, namespace: Namespace) -> bool:
        """Whether a namespace is listed: it can be read, or something below it can."""
        for rule in self.rules:
            at = rule.namespace
            if at is None or at[: len(namespace)] == namespace or namespace[: len(at)] == at:
                return True
        return False


def may_read(principal: Principal | None, namespace: Namespace) -> bool:
    """Whether what is in a namespace can be read; everybody reads where there is no access."""
    return principal is None or any(rule.allows("read", namespace) for rule in principal.rules)


def may_see(principal: Principal | None, namespace: Namespace) -> bool:
    """Whether a namespace is listed; everything is where there is no access."""
    return principal is None or principal.may_see(namespace)


class Access(Protocol):
    """Turns a token into a principal."""

    def principal(self, token: str) -> Principal | None:
        """The owner of this token, or None."""


@dataclass(frozen=True, slots=True)
class TokenFile:
    """Tokens of a TOML file, kept as SHA-256 hashes::

    [tokens.etl]
    sha256 = "…"
    rules = ["write:shop", "read:*"]
    """

    tokens: Mapping[str, Principal]

    @staticmethod
    def read(path: str | Path) -> TokenFile:
        """Read and check the file."""
        try:
            content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, tomllib.TOMLDecodeError) as error:
            raise InvalidInput(f"{path}: {error}") from error
        principals: dict[str, Principal] = {}
        section = content.get("tokens")
        for name, entry in section.items() if isinstance(section, dict) else ():
            if not isinstance(entry, dict):
                raise InvalidInput(f"{path}: expected a section [tokens.{name}]")
            digest = str(entry.get("sha256", "")).lower()
            if len(digest) != 64 or set(digest) - set("0123456789abcdef"):
                raise InvalidInput(f"{path}: token {name!r} needs sha256 = 64 hexadecimal digits")
            rules = tuple(Rule.parse(str(text)) for text in entry.get("rules", ()))
            principals[digest] = Principal(name=name, rules=rules)
        if not principals:
            raise InvalidInput(f"{path}: has no section [tokens.<name>]")
        return TokenFile(principals)

    def principal(self, token: str) -> Principal | None:
        digest = hashlib.sha256(token.encode()).hexdigest()
        match = None
        for stored_digest, principal in self.tokens.items():  # all of them: constant time
            if hmac.compare_digest(stored_digest, digest):
                match = principal
        return match


class WebTokens:
    """JSON web tokens signed by keys of a JWKS address; rules are in the claim `frazil`."""

    def __init__(
        self,
        address: str,
        *,
        audience: str | None = None,
        fetch: Callable[[str], bytes] | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        parts = urlsplit(address)
        is_near = parts.scheme == "http" and parts.hostname in ("127.0.0.1", "::1", "localhost")
        if parts.scheme != "https" and not is_near:
            raise InvalidInput(f"--jwks {address}: keys must come over https")
        self._address = address
        self._audience = audience
        self._fetch = fetch or _fetched
        self._now = now
        self._lock = Lock()
        self._keys: tuple[float, Any] | None = None
        self._rest_s = self._resting_until = 0.0

    def principal(self, token: str) -> Principal | None:
        from joserfc import jwt
        from joserfc.errors import JoseError

        try:
            decoded = self._decoded(token)
            checks: dict[str, Any] = {"exp": {"essential": True}}
            if self._audience is not None:
                checks["aud"] = {"essential": True, "value": self._audience}
            jwt.JWTClaimsRegistry(now=int(self._now()), **checks).validate(decoded.claims)
        except (JoseError, ValueError):
            return None
        texts = decoded.claims.get(CLAIM, [])
        try:
            rules = tuple(Rule.parse(str(text)) for text in texts)
        except (InvalidInput, TypeError):
            return None
        return Principal(name=str(decoded.claims.get("sub", "token")), rules=rules)

    def _decoded(self, token: str) -> Any:
        """The token with its signature checked. Providers change keys before they are asked for
        them again, so an unknown key is looked for once more."""
        from joserfc import jwt
        from joserfc.errors import InvalidKeyIdError

        try:
            return jwt.decode(token, self._key_set(KEYS_LIVE_S), algorithms=_ALGORITHMS)
        except InvalidKeyIdError:
            return jwt.decode(token, self._key_set(KEYS_REST_S), algorithms=_ALGORITHMS)

    def _key_set(self, live_s: float) -> Any:
        """The keys, asked for again when they are older than that. While the provider does not
        answer, those that are known stay good: a key that was withdrawn meanwhile works until it
        answers again, and nobody is signed out because of it."""
        keys = self._keys
        now = self._now()
        if keys is not None and (keys[0] >= now - live_s or now < self._resting_until):
            return keys[1]
        # One request asks; the others go on with the keys there are, or wait for the first ones.
        if not self._lock.acquire(blocking=keys is None):
            return keys[1] if keys is not None else None
        try:
            if self._keys is not keys and self._keys is not None:
                return self._keys[1]
            if self._now() >= self._resting_until:
                self._ask()
        finally:
            self._lock.release()
        if self._keys is None:
            raise RestError(
                503,
                "ServiceUnavailableException",
                "the keys that sign tokens cannot be read now; try again later",
            )
        return self._keys[1]

    def _ask(self) -> None:
        """Ask the provider for its keys; leave it alone for a while if it has none, for longer
        each time."""
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

        try:
            fetched = KeySet.import_key_set(json.loads(self._fetch(self._address)))
            if not fetched.keys:
                raise ValueError("it has no keys")
        except (OSError, ValueError, TypeError, KeyError, JoseError) as error:
            self._rest_s = min(MAX_REST_S, max(MIN_REST_S, 2 * self._rest_s))
            self._resting_until = self._now() + self._rest_s
            log.warning(
                "%s: the keys cannot be read (%s); asked again in %d s",
                self._address,
                error,
                self._rest_s,
            )
        else:
            self._keys = (self._now(), fetched)
            self._rest_s = self._resting_until = 0.0


def _fetched(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=FETCH_S) as answer:
        data: bytes = answer.read(MAX_KEYS_BYTES)
    return data


def authenticated(access: Access, header: str | None) -> Principal:
    """Who sends a request; 401 without a token that is known."""
    kind, _, token = (header or "").partition(" ")
    principal = access.principal(token.strip()) if kind.lower() == "bearer" and token else None
    if principal is None:
        raise RestError(401, "NotAuthorizedException", "a valid bearer token is needed")
    return principal
