"""Answers as servers and the proxies before them send them, in whatever pieces they arrive."""

from __future__ import annotations

import http.client
import socket
import threading
import time

import pytest

from frazil.catalog.remote.remote_http import RawAnswer, read_answer

OK = b"HTTP/1.1 200 OK\r\n"


def answered(*pieces: bytes, max_bytes: int = 1000, keeps_open: bool = False) -> RawAnswer:
    """What is read of pieces that arrive one after the other."""
    ours, theirs = socket.socketpair()
    ours.settimeout(20)

    def send() -> None:
        for piece in pieces:
            theirs.sendall(piece)
            time.sleep(0.005)
        if not keeps_open:
            theirs.close()

    sender = threading.Thread(target=send)
    sender.start()
    try:
        return read_answer(ours, max_bytes=max_bytes)
    finally:
        sender.join()
        ours.close()
        theirs.close()


@pytest.mark.parametrize(
    "pieces",
    [
        (OK + b"Content-Length: 4\r\n\r\nfour",),
        (OK + b"CONTENT-length:4\r", b"\n\r", b"\nfo", b"ur"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"content-length: 4\r\n\r\nfour",),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nfo\r\n", b"2;x=y\r\nur\r\n0\r\n\r\n"),
        (OK + b"transfer-encoding: Chunked\r\n\r\n4\r\nfour\r\n0\r\nWith: trailer\r\n\r\n",),
    ],
)
def test_an_answer_is_read_and_its_connection_used_again(pieces: tuple[bytes, ...]) -> None:
    found = answered(*pieces, keeps_open=True)
    assert found == RawAnswer(status=200, data=b"four", will_close=False)


@pytest.mark.parametrize(
    "pieces",
    [
        (OK + b"\r\nfo", b"ur"),
        (OK + b"Connection: close\r\nContent-Length: 4\r\n\r\nfour",),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nfour",),
        (OK + b"Content-Length: 4\r\n\r\nfour and more",),
    ],
)
def test_a_connection_that_ends_or_goes_astray_is_not_used_again(pieces: tuple[bytes, ...]) -> None:
    assert answered(*pieces) == RawAnswer(status=200, data=b"four", will_close=True)


def test_a_status_without_a_body_has_none() -> None:
    found = answered(b"HTTP/1.1 204 No Content\r\n\r\n", keeps_open=True)
    assert found == RawAnswer(status=204, data=b"", will_close=False)


@pytest.mark.parametrize(
    ("sent", "kind"),
    [
        (b"", http.client.RemoteDisconnected),
        (OK, http.client.RemoteDisconnected),
        (OK + b"Content-Length: 9\r\n\r\nfour", http.client.IncompleteRead),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n9\r\nfour", http.client.IncompleteRead),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n4\r\nfour\r\n", http.client.RemoteDisconnected),
        (OK + b"Transfer-Encoding: chunked\r\n\r\nfour\r\n", http.client.HTTPException),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n-4\r\nfour\r\n", http.client.HTTPException),
        (OK + b"Content-Length: many\r\n\r\n", http.client.HTTPException),
        (OK + b"Content-Length: 1001\r\n\r\n", http.client.HTTPException),
        (OK + b"\r\n" + b"x" * 1001, http.client.HTTPException),
        (b"SSH-2.0-OpenSSH\r\n\r\n", http.client.BadStatusLine),
        (b"HTTP/1.1 \xb2\xb2\xb2\r\n\r\n", http.client.BadStatusLine),
        (OK + b"X: " + b"x" * 70_000, http.client.LineTooLong),
    ],
)
def test_what_is_not_a_whole_answer_is_none(sent: bytes, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        answered(sent)
