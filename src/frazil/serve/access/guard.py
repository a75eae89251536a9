"""What keeps other web pages away from the server: a token for changes, and checks of headers.

A page of another site can send requests to a server on this machine. It cannot read the answers,
so it never learns the session's token, which every POST has to carry. A site whose name was made
to resolve to this machine could read them: so a server without tokens answers only under its
address, as localhost, or under names that it was given.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from frazil.serve.rest_errors import RestError

if TYPE_CHECKING:
    from frazil.serve.exchange import Request

SESSION_HEADER = "x-frazil-session"

API_HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
PAGE_HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "font-src 'self'; connect-src 'self'; manifest-src 'self'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Guard:
    """Signs with a secret that lives as long as the server."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)

    def session_token(self, principal: str | None) -> str:
        """The token of whoever is signed in."""
        return self.signed("session", principal or "")

    def signed(self, *parts: str) -> str:
        """A signature of some texts that cannot be forged."""
        message = b"\x00".join(part.encode("utf-8", "surrogatepass") for part in parts)
        return hmac.new(self._secret, message, hashlib.sha256).hexdigest()

    def check(self, call: Request, *, has_access: bool, names: tuple[str, ...]) -> None:
        """403 unless a request came from the explorer's own page, or from no page at all."""
        check_host(call, has_access=has_access, names=names)
        host = call.headers.get("host", "")
        origin = call.headers.get("origin")
        site = call.headers.get("sec-fetch-site")
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            raise _forbidden(f"cross-origin request from {origin} rejected")
        if site is not None and site not in ("same-origin", "none"):
            raise _forbidden("cross-site request rejected")
        if call.method == "POST":
            principal = None if call.principal is None else call.principal.name
            token = call.headers.get(SESSION_HEADER, "")
            if not hmac.compare_digest(token.encode(), self.session_token(principal).encode()):
                raise _forbidden(
                    "the request has no valid session token; reload the page to get one"
                )
            kind = call.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != "application/json":
                raise _forbidden(f"Content-Type is {kind!r}; expected application/json")


def check_host(call: Request, *, has_access: bool, names: tuple[str, ...]) -> None:
    """403 for a server without tokens under a name that somebody else may control."""
    host = call.headers.get("host", "")
    if not has_access and not is_own(host, names):
        raise _forbidden(
            f"this server is not called {host!r}; use its address, or start it with --name"
        )


def check_not_a_page(call: Request, *, has_access: bool, names: tuple[str, ...]) -> None:
    """403 for a web page that sends requests to a server without tokens. Clients of the REST
    catalog are programs; browsers say on whose behalf they ask, unless the page's own name was
    made to resolve to this machine."""
    check_host(call, has_access=has_access, names=names)
    site = call.headers.get("sec-fetch-site", "none")
    if not has_access and ("origin" in call.headers or site != "none"):
        raise _forbidden("the catalog takes no requests from web pages")


def _forbidden(message: str) -> RestError:
    return RestError(403, "ForbiddenException", message)


@lru_cache(maxsize=256)
def is_own(host: str, names: tuple[str, ...]) -> bool:
    """Whether a Host header cannot come from a name that somebody else controls."""
    try:
        name = (urlsplit(f"//{host}").hostname or "").rstrip(".").lower()
    except ValueError:
        return False
    if name == "localhost" or name.endswith(".localhost") or name in map(str.lower, names):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
