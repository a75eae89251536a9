"""Limits on requests, TLS, and what the log never shows."""

from __future__ import annotations

import datetime
import ipaddress
import logging
import socket
import threading
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from pyiceberg.catalog.rest import RestCatalog
from starlette.applications import Starlette
from starlette.testclient import TestClient

import frazil
from frazil import serve
from frazil.errors import InvalidInput
from frazil.serve.app import build
from frazil.serve.running import uvicorn_config
from frazil.serve.service import Service
from frazil.serve.settings import Certificate, Settings
from frazil.table import Catalog
from tests.serve.test_namespaces_and_tables import error_of, make
from tests.serve.test_pyiceberg import rows


def test_a_request_that_takes_too_long_is_in_doubt_and_its_work_goes_on(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """504 is how clients learn that a commit may have landed; 4xx would make them delete files."""
    is_told, done = threading.Event(), threading.Event()
    service = Service(catalog, Settings(request_timeout_s=0.05))
    pointers = service.catalog._pointers
    original = pointers.namespaces.create

    def slow(*arguments: object, **more: object) -> None:
        is_told.wait(10)
        original(*arguments, **more)  # type: ignore[arg-type]
        done.set()

    monkeypatch.setattr(pointers.namespaces, "create", slow)
    with TestClient(build(service), base_url="http://127.0.0.1:8181") as client:
        answer = client.post("/v1/namespaces", json={"namespace": ["late"]})
        assert error_of(answer) == (504, "GatewayTimeoutException")
        is_told.set()
        assert done.wait(10)
    assert catalog.list_namespaces() == ["late"]


def test_a_body_that_does_not_arrive_holds_nothing(catalog: Catalog) -> None:
    settings = Settings(request_timeout_s=0.2)
    with serve.start(catalog, settings=settings) as server:
        host, port = server.uri.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=10) as slow:
            slow.sendall(
                b"POST /v1/namespaces HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99\r\n\r\n{"
            )
            assert b" 408 " in slow.recv(4096).split(b"\r\n")[0]


def test_a_body_whose_length_is_not_stated_is_counted(catalog: Catalog) -> None:
    settings = Settings(max_request_bytes=1000)
    with serve.start(catalog, settings=settings) as server:
        parts = (b" " * 100 for _ in range(20))
        answer = httpx.post(f"{server.uri}/v1/namespaces", content=parts)
    assert answer.status_code == 413


# TLS


def certificate(folder: Path) -> Certificate:
    """A certificate of 127.0.0.1 that is its own authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "frazil test")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return Certificate(file=str(folder / "cert.pem"), key=str(folder / "key.pem"))


def test_clients_come_over_tls(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):  # would count for more than the setting
        monkeypatch.delenv(name, raising=False)
    shown = certificate(tmp_path)
    with serve.start(catalog, certificate=shown) as server:
        assert server.uri.startswith("https://127.0.0.1:")
        settings: dict[str, Any] = {"uri": server.uri, "ssl": {"cabundle": shown.file}}
        remote = RestCatalog("x", **settings)
        remote.create_namespace("shop")
        remote.create_table("shop.orders", rows(1).schema).append(rows(1))
        with frazil.connect(server.uri, **{"tls.ca-file": shown.file}) as native:
            native["shop.orders"].append(pa.table({"id": [2], "country": ["fr"]}))
            assert sorted(native["shop.orders"].scan().to_arrow()["id"].to_pylist()) == [1, 2]
        with pytest.raises(frazil.FrazilError, match="certificate"):
            frazil.connect(server.uri).list_namespaces()


def test_a_certificate_that_cannot_be_used_is_named(catalog: Catalog, tmp_path: Path) -> None:
    shown = certificate(tmp_path)
    (tmp_path / "key.pem").write_text("nonsense")
    with pytest.raises(InvalidInput, match=r"cert\.pem.*key\.pem"):
        serve.start(catalog, certificate=shown)
    with pytest.raises(InvalidInput, match=r"missing\.pem"):
        serve.start(catalog, certificate=Certificate(file=str(tmp_path / "missing.pem")))


# The log


def test_no_secret_reaches_the_log(
    catalog: Catalog, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests of all kinds, some of which fail inside, with a token and at the most talkative."""
    caplog.set_level(logging.DEBUG)
    settings = Settings(properties={"s3.secret-access-key": "hunter2-key"})
    token = {"Authorization": "Bearer hunter2-token", "Cookie": "hunter2-cookie"}
    service = Service(catalog, settings)
    with TestClient(build(service), headers=token, base_url="http://127.0.0.1:8181") as client:
        make(client)
        client.get("/v1/config")
        client.post("/v1/namespaces", content=b"{")
        monkeypatch.setattr(
            service.catalog._pointers.namespaces,
            "children",
            lambda *_: (_ for _ in ()).throw(RuntimeError("x")),
        )
        assert client.get("/v1/namespaces").status_code == 500
    assert any(record.exc_info for record in caplog.records), "the failure itself is logged"
    assert "hunter2" not in caplog.text


def _failing(*_: object) -> None:
    raise RuntimeError("something inside")


def test_the_password_of_a_database_is_not_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    address = "postgresql://frazil:hunter2@127.0.0.1:1/lake?connect_timeout=1"
    with pytest.raises(frazil.FrazilError) as failure:
        frazil.connect(address, warehouse=str(tmp_path)).list_namespaces()
    told = [str(failure.value), repr(failure.value), caplog.text]
    cause: BaseException | None = failure.value
    while cause is not None:
        told.append(str(cause))
        cause = cause.__cause__ or cause.__context__
    assert "hunter2" not in "\n".join(told)


def test_no_connection_becomes_a_web_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = "uvicorn.protocols.websockets.auto.AutoWebSocketsProtocol"
    monkeypatch.setattr(installed, object())  # which an installed package offers
    config = uvicorn_config(Starlette())
    config.load()
    assert config.ws_protocol_class is None
