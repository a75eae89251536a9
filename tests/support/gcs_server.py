"""The part of Google Cloud Storage's XML API that object stores' clients use, with generations.

Every write of an object has a new generation, and `x-goog-if-generation-match` is checked under one
lock: 0 means that there is no object. Requests without the token are answered with 401.
"""

from __future__ import annotations

import hashlib
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from tests.support.object_server import SECRET, Bucket


@dataclass(slots=True)
class _Objects:
    """What the server holds: objects and their generations, and uploads that are under way."""

    bucket: str
    lock: threading.Lock = field(default_factory=threading.Lock)
    objects: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    generation: int = 1_000

    def put(self, key: str, data: bytes, expected: str | None) -> int | None:
        """The new generation; None when the object has another one than expected."""
        with self.lock:
            held = self.objects.get(key, (b"", 0))[1]
            if expected is not None and int(expected) != held:
                return None
            self.generation += 1
            self.objects[key] = (data, self.generation)
            return self.generation


def _tag(data: bytes) -> str:
    return f'"{hashlib.md5(data).hexdigest()}"'


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    state: _Objects

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self._handle
        raise AttributeError(name)

    def log_message(self, *arguments: Any) -> None:
        """Nothing is printed."""

    def _handle(self) -> None:
        body = self._body()
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query, True).items()}
        bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
        if self.headers.get("Authorization") != f"Bearer {SECRET}":
            self._error(401, "AuthenticationRequired")
        elif bucket != self.state.bucket:
            self._error(404, "NoSuchBucket")
        elif not key:
            self._list(query)
        elif "uploads" in query or "uploadId" in query:
            self._multipart(key, query, body)
        else:
            getattr(self, f"_{self.command.lower()}")(key, body)

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _put(self, key: str, body: bytes) -> None:
        generation = self.state.put(key, body, self.headers.get("x-goog-if-generation-match"))
        if generation is None:
            self._error(412, "PreconditionFailed")
        else:
            self._answer(200, {"ETag": _tag(body), "x-goog-generation": str(generation)})

    def _get(self, key: str, body: bytes) -> None:
        if key not in self.state.objects:
            self._error(404, "NoSuchKey")
            return
        data, generation = self.state.objects[key]
        about = {
            "ETag": _tag(data),
            "x-goog-generation": str(generation),
            "Last-Modified": formatdate(usegmt=True),
        }
        if self.headers.get("If-None-Match") == _tag(data):
            self._answer(304, about)
            return
        wanted = self.headers.get("Range")
        if wanted is None:
            self._answer(200, about, data)
            return
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        start = int(first) if first else max(0, len(data) - int(last))
        end = min(int(last) + 1, len(data)) if first and last else len(data)
        if start >= len(data):
            self._error(416, "InvalidRange")
            return
        about["Content-Range"] = f"bytes {start}-{end - 1}/{len(data)}"
        self._answer(206, about, data[start:end])

    _head = _get

    def _delete(self, key: str, body: bytes) -> None:
        with self.state.lock:
            known = self.state.objects.pop(key, None)
        if known is None:
            self._error(404, "NoSuchKey")
        else:
            self._answer(204)

    def _list(self, query: dict[str, str]) -> None:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter")
        folders: set[str] = set()
        rows = []
        for key, (data, _) in sorted(self.state.objects.items()):
            if not key.startswith(prefix):
                continue
            rest = key[len(prefix) :]
            if delimiter and delimiter in rest:
                folders.add(prefix + rest.partition(delimiter)[0] + delimiter)
                continue
            rows.append(
                f"<Contents><Key>{escape(key)}</Key><Size>{len(data)}</Size>"
                f"<LastModified>2026-01-02T03:04:05.000Z</LastModified>"
                f"<ETag>{escape(_tag(data))}</ETag></Contents>"
            )
        rows += [
            f"<CommonPrefixes><Prefix>{escape(each)}</Prefix></CommonPrefixes>"
            for each in sorted(folders)
        ]
        text = f"<ListBucketResult><IsTruncated>false</IsTruncated>{''.join(rows)}"
        self._answer(200, body=f"{text}</ListBucketResult>".encode())

    def _multipart(self, key: str, query: dict[str, str], body: bytes) -> None:
        upload = query.get("uploadId", "")
        if "uploads" in query:
            upload = uuid.uuid4().hex
            self.state.uploads[upload] = {}
            text = f"<UploadId>{upload}</UploadId>"
            self._answer(
                200,
                body=f"<InitiateMultipartUploadResult>{text}</InitiateMultipartUploadResult>".encode(),
            )
        elif upload not in self.state.uploads:
            self._error(404, "NoSuchUpload")
        elif self.command == "PUT":
            self.state.uploads[upload][int(query["partNumber"])] = body
            self._answer(200, {"ETag": _tag(body)})
        elif self.command == "DELETE":
            del self.state.uploads[upload]
            self._answer(204)
        else:
            pieces = self.state.uploads.pop(upload)
            data = b"".join(pieces[number] for number in sorted(pieces))
            generation = self.state.put(key, data, None)
            text = f"<ETag>{escape(_tag(data))}</ETag>"
            self._answer(
                200,
                {"x-goog-generation": str(generation)},
                f"<CompleteMultipartUploadResult>{text}</CompleteMultipartUploadResult>".encode(),
            )

    def _error(self, status: int, code: str) -> None:
        text = f"<Error><Code>{code}</Code><Message>{code}</Message></Error>"
        self._answer(status, body=text.encode())

    def _answer(
        self, status: int, headers: dict[str, str] | None = None, body: bytes = b""
    ) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if status not in (204, 304):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD" and status not in (204, 304):
            self.wfile.write(body)


@contextmanager
def gcs_server() -> Iterator[Bucket]:
    """Run the server on loopback, with one bucket."""
    state = _Objects(bucket=f"frazil-{uuid.uuid4().hex[:8]}")
    handler = type("_BoundHandler", (_Handler,), {"state": state})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield Bucket(
            scheme="gs",
            name=state.bucket,
            properties={
                "gcs.service.host": f"http://127.0.0.1:{server.server_address[1]}",
                "gcs.oauth2.token": SECRET,
            },
        )
    finally:
        server.shutdown()
        server.server_close()
