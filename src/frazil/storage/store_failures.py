"""Errors of an object store as ours: what the store said, and what to do about it.

obstore has a class for some answers and text for the others. The status and the code in that text
are the store's own, so they decide here, and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from frazil.errors import AlreadyExists, FrazilError, NotFound, StorageError
from frazil.storage.base import PreconditionFailed, StoreBusy

_STATUS: Final = re.compile(r"status code: (\d{3})|\bstatus: (\d{3})")
_CODE: Final = re.compile(r"<Code>\s*([^<]+?)\s*</Code>|\"code\":\s*\"([^\"]+)\"")
_MESSAGE: Final = re.compile(r"<Message>\s*([^<]+?)\s*</Message>", re.DOTALL)
_REGION: Final = re.compile(r"expecting '([\w-]+)'|<Region>([\w-]+)</Region>")
_MAX_REASON: Final = 300

_BUSY_STATUSES: Final = frozenset({429, 503})
_BUSY_CODES: Final = frozenset(
    {
        "SlowDown",
        "SlowDownRead",
        "SlowDownWrite",
        "ServiceUnavailable",
        "ServerBusy",
        "TooManyRequests",
        "RequestLimitExceeded",
        "Throttling",
        "ConditionalRequestConflict",
        "OperationAborted",
        "OperationTimedOut",
    }
)
_NO_BUCKET: Final = frozenset({"NoSuchBucket", "ContainerNotFound", "InvalidBucketName"})
_ADVICE: Final[Mapping[str, str]] = {
    "RequestTimeTooSkewed": "this machine's clock differs from the store's: set it (NTP)",
    "ExpiredToken": "the credentials have expired: renew them",
    "ExpiredTokenException": "the credentials have expired: renew them",
    "TokenRefreshRequired": "the credentials have expired: renew them",
    "InvalidToken": "the session token does not belong to the access key, or has expired: renew it",
    "InvalidAccessKeyId": "the store does not know the access key: check s3.access-key-id or "
    "AWS_ACCESS_KEY_ID, and that s3.endpoint names the right store",
    "SignatureDoesNotMatch": "the secret does not belong to the access key: check "
    "s3.secret-access-key or AWS_SECRET_ACCESS_KEY",
    "AuthenticationFailed": "the store does not accept the credentials: check adls.account-key, "
    "adls.sas-token or the client's secret, and this machine's clock",
    "AccessDenied": "the credentials do not allow it: grant reading, writing, listing and deleting "
    "below the warehouse",
    "PermanentRedirect": "the bucket lies in another region: set s3.region",
    "AuthorizationHeaderMalformed": "the bucket lies in another region: set s3.region",
    "IllegalLocationConstraintException": "the bucket lies in another region: set s3.region",
    "AccountIsDisabled": "the account is disabled: ask who runs the store",
    "QuotaExceeded": "the store is full: ask who runs it",
}
_REFUSED: Final = (
    "the credentials do not allow it, or are wrong: check them and what they may do below the "
    "warehouse"
)


@contextmanager
def store_errors(path: str, verb: str, *, endpoint: str = "the store") -> Iterator[None]:
    """Turn what obstore raises inside into our errors, naming the path."""
    try:
        yield
    except (FrazilError, KeyboardInterrupt, SystemExit):
        raise
    except Exception as error:
        raise store_error(error, path, verb, endpoint=endpoint) from error


def store_error(
    error: Exception, path: str, verb: str, *, endpoint: str = "the store"
) -> FrazilError:
    """Our error for one of obstore."""
    from obstore import exceptions

    text = str(error)
    status, code = _status(text), _first(_CODE, text)
    if code in _NO_BUCKET:
        return StorageError(
            f"{path}: {verb} failed: there is no such bucket ({code}); "
            "create it, or correct the address or the endpoint"
        )
    if isinstance(error, FileNotFoundError) or status == 404:
        return NotFound(f"{path}: no such file")
    message = _said(text)
    if _is_busy(status, code):
        return StoreBusy(
            f"{path}: {verb} failed: the store is overloaded ({message}); "
            "try again later, or with fewer requests at once"
        )
    if isinstance(error, exceptions.AlreadyExistsError):
        return AlreadyExists(f"{path}: the file already exists")
    if isinstance(error, exceptions.PreconditionError) or status == 412:
        return PreconditionFailed(f"{path}: the object has been changed or removed meanwhile")
    advice = _advice(error, text, status, code, endpoint)
    return StorageError(f"{path}: {verb} failed: {message}" + (f"; {advice}" if advice else ""))


def is_refusal(error: Exception) -> bool:
    """Whether the store has answered and said no: the request had no effect."""
    from obstore import exceptions

    refusals = (
        exceptions.AlreadyExistsError,
        exceptions.PreconditionError,
        exceptions.PermissionDeniedError,
        exceptions.UnauthenticatedError,
        exceptions.InvalidPathError,
        FileNotFoundError,
    )
    status, code = _status(str(error)), _first(_CODE, str(error))
    if _is_busy(status, code):  # obstore takes every 409 for "exists already"
        return False
    return isinstance(error, refusals) or (
        status is not None and 300 <= status < 500 and status not in (408, 409)
    )


def has_no_range(error: Exception) -> bool:
    """Whether the object has no such range, as an empty one has none: some stores say so, others
    answer with all of it, which obstore refuses."""
    return _status(str(error)) == 416 or "non-partial response" in str(error)


def _is_busy(status: int | None, code: str | None) -> bool:
    return status in _BUSY_STATUSES or code in _BUSY_CODES


def _advice(
    error: Exception, text: str, status: int | None, code: str | None, endpoint: str
) -> str | None:
    from obstore import exceptions

    region = _first(_REGION, text)
    advice = _ADVICE.get(code or "")
    if advice is not None:
        return f"{advice}={region}" if region and advice.endswith("s3.region") else advice
    if "redirect" in text.lower() or status in (301, 307):
        return _ADVICE["PermanentRedirect"]
    refused = (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError)
    if isinstance(error, refused) or status in (401, 403):
        return _REFUSED
    if status is not None and status >= 500:
        return "the store failed: try again later"
    if status is None and any(word in text.lower() for word in ("metadata/instance", "169.254")):
        return (
            "no credentials were given, and this machine's service has none: set the properties "
            "or the environment (AWS_ACCESS_KEY_ID, GOOGLE_APPLICATION_CREDENTIALS, "
            "AZURE_STORAGE_ACCOUNT_KEY), or name a provider"
        )
    if status is None and any(
        word in text.lower() for word in ("error sending request", "connect", "dns", "timed out")
    ):
        return f"{endpoint} cannot be reached: check the endpoint and the network"
    return None


def _status(text: str) -> int | None:
    match = _STATUS.search(text)
    return None if match is None else int(match[1] or match[2])


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    match = pattern.search(text)
    return None if match is None else next((part for part in match.groups() if part), None)


def _said(text: str) -> str:
    """The store's own words, short."""
    status, code, message = _status(text), _first(_CODE, text), _first(_MESSAGE, text)
    parts = [str(part) for part in (status, code) if part is not None]
    if message is not None and message != code:
        parts.append(" ".join(message.split())[:_MAX_REASON])
    if parts:
        return " ".join(parts)
    # After the first paragraph obstore repeats the error as a structure.
    return " ".join(text.split("\n\n")[0].split())[:_MAX_REASON]
