"""Who may do what, with tokens of a file and with web tokens."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import re
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import KeySet, OctKey, RSAKey
from starlette.testclient import TestClient

from frazil.errors import InvalidInput
from frazil.serve.access.principals import Access, Rule, TokenFile, WebTokens
from frazil.serve.app import build, endpoints
from frazil.serve.explorer import endpoints as explorer
from frazil.serve.service import Service
from frazil.serve.settings import Settings
from frazil.table import Catalog
from tests.serve.test_namespaces_and_tables import SCHEMA, error_of

TOKENS = {"etl": ["write:shop", "read:*"], "report": ["read:shop"], "admin": ["write:*"]}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture
def tokens(tmp_path: Path) -> TokenFile:
    """A file in which every token is its name and `-secret`."""
    lines = []
    for name, rules in TOKENS.items():
        digest = hashlib.sha256(f"{name}-secret".encode()).hexdigest()
        lines.append(f'[tokens.{name}]\nsha256 = "{digest}"\nrules = {json.dumps(rules)}\n')
    path = tmp_path / "tokens.toml"
    path.write_text("\n".join(lines))
    return TokenFile.read(path)


def served(catalog: Catalog, access: Access) -> TestClient:
    for name in ("shop", "other"):
        catalog.create_namespace(name, if_not_exists=True)
    return TestClient(build(Service(catalog, access=access)), base_url="http://127.0.0.1:8181")


@pytest.mark.parametrize(
    ("token", "method", "path", "status"),
    [
        (None, "GET", "/v1/config", 200),
        (None, "GET", "/health", 200),
        (None, "GET", "/v1/namespaces", 401),
        ("wrong", "GET", "/v1/namespaces", 401),
        ("None", "GET", "/v1/namespaces", 401),
        ("report-secret", "GET", "/v1/namespaces/shop", 200),
        ("report-secret", "GET", "/v1/namespaces/other", 403),
        ("report-secret", "DELETE", "/v1/namespaces/shop", 403),
        ("etl-secret", "GET", "/v1/namespaces/other", 200),
        ("etl-secret", "DELETE", "/v1/namespaces/other", 403),
        ("etl-secret", "DELETE", "/v1/namespaces/shop", 204),
        ("admin-secret", "DELETE", "/v1/namespaces/other", 204),
    ],
)
def test_a_token_gives_its_rights_and_no_others(
    catalog: Catalog, tokens: TokenFile, token: str | None, method: str, path: str, status: int
) -> None:
    headers = {} if token is None else bearer(token)
    answer = served(catalog, tokens).request(method, path, headers=headers)
    assert answer.status_code == status


def test_names_in_bodies_are_checked_too(catalog: Catalog, tokens: TokenFile) -> None:
    client = served(catalog, tokens)
    mine = bearer("etl-secret")
    table = {"name": "t", "schema": SCHEMA}
    made = client.post("/v1/namespaces/shop/tables", json=table, headers=mine)
    assert made.status_code == 200
    away = {
        "source": {"namespace": ["shop"], "name": "t"},
        "destination": {"namespace": ["other"], "name": "t"},
    }
    moved = client.post("/v1/tables/rename", json=away, headers=mine)
    assert error_of(moved) == (403, "ForbiddenException")
    change = {"identifier": {"namespace": ["other"], "name": "t"}, "updates": []}
    together = client.post(
        "/v1/transactions/commit", json={"table-changes": [change]}, headers=mine
    )
    assert error_of(together) == (403, "ForbiddenException")
    space = client.post("/v1/namespaces", json={"namespace": ["new"]}, headers=mine)
    assert error_of(space) == (403, "ForbiddenException")


def test_only_namespaces_that_can_be_read_are_listed(catalog: Catalog, tokens: TokenFile) -> None:
    found = served(catalog, tokens).get("/v1/namespaces", headers=bearer("report-secret"))
    assert found.json()["namespaces"] == [["shop"]]


def test_no_token_reaches_a_message_or_log(
    catalog: Catalog, tokens: TokenFile, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    answer = served(catalog, tokens).get("/v1/namespaces", headers=bearer("hunter2"))
    assert "hunter2" not in answer.text + caplog.text


@pytest.mark.parametrize(
    "text", ["", "tokens = 1", "[tokens.a]\nsha256 = 'x'", "[tokens.a]\nrules=['dance:*']"]
)
def test_a_file_that_cannot_be_used_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tokens.toml"
    path.write_text(text)
    with pytest.raises(InvalidInput):
        TokenFile.read(path)


@pytest.mark.parametrize("text", ["read", "read:", "drop:shop", ":x"])
def test_a_rule_says_right_and_namespace(text: str) -> None:
    with pytest.raises(InvalidInput):
        Rule.parse(text)


KEY = RSAKey.generate_key(2048, {"kid": "1"})
OTHER = RSAKey.generate_key(2048, {"kid": "1"})


def web_tokens(**more: Any) -> WebTokens:
    public = KeySet([KEY]).as_dict(private=False)
    return WebTokens(
        "https://login.example/keys",
        audience="frazil",
        fetch=lambda _: json.dumps(public).encode(),
        now=lambda: 1_000,
        **more,
    )


def signed(key: Any = KEY, algorithm: str = "RS256", **claims: Any) -> str:
    whole = {"sub": "ann", "aud": "frazil", "exp": 2_000, "frazil": ["read:shop"], **claims}
    return jwt.encode({"alg": algorithm, "kid": "1"}, whole, key)


def test_a_web_token_that_is_valid_gives_its_rules() -> None:
    found = web_tokens().principal(signed())
    assert found is not None
    assert (found.name, found.rules) == ("ann", (Rule(namespace=("shop",), right="read"),))


@pytest.mark.parametrize(
    "token",
    [
        signed(OTHER),
        signed(exp=999),
        signed(aud="somebody else"),
        signed(frazil=["dance:*"]),
        signed(OctKey.import_key("secret-secret-secret-secret-1234"), "HS256"),
        "not a token",
    ],
    # Signatures differ in each run, names of tests must not.
    ids=["key", "expired", "audience", "rule", "algorithm", "text"],
)
def test_a_web_token_that_is_not_valid_is_nobodys(token: str) -> None:
    assert web_tokens().principal(token) is None


def test_keys_come_over_a_safe_connection() -> None:
    with pytest.raises(InvalidInput, match="https"):
        WebTokens("http://login.example/keys")


def _unsigned(**claims: Any) -> str:
    whole = {"sub": "ann", "aud": "frazil", "exp": 2_000, "frazil": ["write:*"], **claims}
    parts = ({"alg": "none", "kid": "1"}, whole)
    texts = [urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join([*texts, ""])


def test_a_web_token_is_signed_with_a_key_of_the_provider() -> None:
    assert web_tokens().principal(_unsigned()) is None
    assert web_tokens().principal(signed()[:-8] + "AAAAAAAA") is None
    # The public key is known to everyone: it must not pass for a shared secret.
    public = KEY.as_pem(private=False)
    body = signed().rsplit(".", 1)[0].split(".")[1]
    head = urlsafe_b64encode(b'{"alg":"HS256","kid":"1"}').decode().rstrip("=")
    mac = hmac.new(public, f"{head}.{body}".encode(), "sha256").digest()
    forged = f"{head}.{body}.{urlsafe_b64encode(mac).decode().rstrip('=')}"
    assert web_tokens().principal(forged) is None


def test_a_key_that_is_new_at_the_provider_is_asked_for() -> None:
    fresh = RSAKey.generate_key(2048, {"kid": "2"})
    offered: list[list[Any]] = [[KEY], [KEY, fresh]]
    clock = [1_000.0]
    access = WebTokens(
        "https://login.example/keys",
        fetch=lambda _: json.dumps(KeySet(offered[0]).as_dict(private=False)).encode(),
        now=lambda: clock[0],
    )
    token = jwt.encode({"alg": "RS256", "kid": "2"}, {"sub": "ann", "exp": 2_000}, fresh)
    assert access.principal(token) is None
    offered.pop(0)
    assert access.principal(token) is None, "it was asked a moment ago"
    clock[0] += 11
    assert access.principal(token) is not None


def test_keys_that_cannot_be_read_are_no_reason_to_refuse_a_token(catalog: Catalog) -> None:
    def fail(_: str) -> bytes:
        raise OSError("no route")

    access = WebTokens("https://login.example/keys", fetch=fail)
    answer = served(catalog, access).get("/v1/namespaces", headers=bearer(signed()))
    assert error_of(answer) == (503, "ServiceUnavailableException")


@pytest.mark.parametrize("address", ["http://localhost.example/k", "http://127.0.0.1.example/k"])
def test_a_name_that_begins_like_this_machine_is_another_one(address: str) -> None:
    with pytest.raises(InvalidInput, match="https"):
        WebTokens(address)


def test_every_endpoint_needs_a_token_but_those_that_say_who_is_there(
    catalog: Catalog, tokens: TokenFile
) -> None:
    service = Service(catalog, Settings(shows_v4=True), tokens)
    client = TestClient(build(service), base_url="http://127.0.0.1:8181")
    filled = {"namespace": "shop", "table": "t", "view": "v", "plan-id": "p"}
    answered = set()
    for each in (*endpoints(), *explorer.ENDPOINTS):
        path = re.sub(r"\{([^}]+)\}/?", lambda found: _filled(found, filled), each.template)
        answer = client.request(each.method, path)
        if answer.status_code != 401:
            answered.add(each.template)
    assert answered == {"/v1/config", f"{explorer.API}/session"}
    session = client.get(f"{explorer.API}/session").json()
    assert "warehouse" not in json.dumps(session)


def _filled(found: re.Match[str], names: dict[str, str]) -> str:
    if found[1] == "prefix":
        return ""
    return names.get(found[1], "x") + ("/" if found[0].endswith("/") else "")


def test_properties_of_clients_are_for_those_with_a_token(
    catalog: Catalog, tokens: TokenFile
) -> None:
    settings = Settings(properties={"s3.secret-access-key": "hunter2"})
    client = TestClient(build(Service(catalog, settings, tokens)), base_url="http://127.0.0.1:8181")
    assert "hunter2" not in client.get("/v1/config").text
    assert "hunter2" not in client.get("/v1/config", headers=bearer("wrong")).text
    known = client.get("/v1/config", headers=bearer("report-secret")).json()
    assert known["defaults"] == {"s3.secret-access-key": "hunter2"}


def test_an_answer_kept_for_one_sender_is_not_given_to_another(
    catalog: Catalog, tokens: TokenFile
) -> None:
    client = served(catalog, tokens)
    key = {"Idempotency-Key": "01990000-0000-7000-8000-000000000000"}
    body = {"namespace": ["shop", "new"], "properties": {"note": "hunter2"}}
    first = client.post("/v1/namespaces", json=body, headers=bearer("etl-secret") | key)
    assert first.status_code == 200
    again = client.post("/v1/namespaces", json=body, headers=bearer("report-secret") | key)
    assert (again.status_code, "hunter2" in again.text) == (422, False)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Origin": "http://testserver"},
    ],
)
def test_a_web_page_changes_nothing_on_a_server_without_tokens(
    catalog: Catalog, headers: dict[str, str]
) -> None:
    catalog.create_namespace("shop")
    client = TestClient(build(Service(catalog)), base_url="http://127.0.0.1:8181")
    plain = {"Content-Type": "text/plain", **headers}
    answer = client.post("/v1/namespaces", content='{"namespace":["n"]}', headers=plain)
    assert error_of(answer) == (403, "ForbiddenException")
    assert catalog.list_namespaces() == ["shop"]
