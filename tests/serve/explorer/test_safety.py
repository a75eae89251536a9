"""Who may look, what other pages cannot do, and what the page itself may load."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from frazil.serve.access.principals import TokenFile
from frazil.serve.app import build
from frazil.serve.service import Service
from frazil.serve.settings import Settings
from frazil.table import Catalog
from tests.serve.explorer.conftest import API, HERE, ORDERS, browse

POLICY = {
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
}
TAG = {"params": {"name": "mine"}}


@pytest.fixture
def tokens(tmp_path: Path) -> TokenFile:
    """`reader` may read the shop, `writer` may change it; tokens are their names."""
    rules = {"reader": "read:shop", "writer": "write:shop", "stranger": "read:other"}
    text = "".join(
        f'[tokens.{name}]\nsha256 = "{hashlib.sha256(name.encode()).hexdigest()}"\n'
        f'rules = ["{rule}"]\n'
        for name, rule in rules.items()
    )
    path = tmp_path / "tokens.toml"
    path.write_text(text)
    return TokenFile.read(path)


def signed_in(client: TestClient, name: str) -> dict[str, str]:
    headers = {"Authorization": f"Bearer {name}"}
    token = client.get(f"{API}/session", headers=headers).json()["token"]
    return {**headers, "x-frazil-session": token or ""}


@pytest.mark.parametrize("path", ["/", "/explorer", "/explorer/app.js", "/explorer/shop/orders"])
def test_the_page_may_load_from_its_own_server_alone(path: str, page: TestClient) -> None:
    answer = page.get(path)
    assert answer.status_code == 200
    policy = {part.strip() for part in answer.headers["content-security-policy"].split(";")}
    assert policy >= POLICY
    assert not any("unsafe" in part or "*" in part for part in policy)
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    again = page.get(path, headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    "path",
    [
        "/explorer/..%2f..%2fapp.py",
        "/explorer/%2e%2e/files.py",
        "/explorer/files.py",
        "/explorer/x.js",
    ],
)
def test_only_files_of_the_page_are_given_out(path: str, page: TestClient) -> None:
    assert page.get(path).status_code == 404


def test_answers_are_not_kept_and_not_framed(page: TestClient) -> None:
    headers = page.get(f"{ORDERS}/tree").headers
    assert headers["cache-control"] == "no-store"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]


def test_a_token_is_needed_where_there_are_tokens(shop: Catalog, tokens: TokenFile) -> None:
    client = TestClient(build(Service(shop, access=tokens)), base_url=HERE)
    session = client.get(f"{API}/session").json()
    assert session["needs_token"]
    assert session["token"] is None
    assert session["catalog"] is None
    assert client.get(f"{API}/catalog").status_code == 401
    assert client.get(f"{ORDERS}/tree").status_code == 401
    for name, status in (("reader", 200), ("writer", 200), ("stranger", 403), ("nobody", 401)):
        given = {"Authorization": f"Bearer {name}"}
        assert client.get(f"{ORDERS}/tree", headers=given).status_code == status
    stranger = {"Authorization": "Bearer stranger"}
    assert client.get(f"{API}/catalog", headers=stranger).json()["tables"]["name"] == []
    assert client.get(f"{API}/changes?since=", headers=stranger).json()["changed"] == []


def test_changes_need_the_right_to_write(shop: Catalog, tokens: TokenFile) -> None:
    client = TestClient(build(Service(shop, access=tokens)), base_url=HERE)
    statuses = {
        name: client.post(
            f"{ORDERS}/actions/tag", json=TAG, headers=signed_in(client, name)
        ).status_code
        for name in ("reader", "writer")
    }
    assert statuses == {"reader": 403, "writer": 200}


def test_sql_shows_the_tables_that_one_may_read(shop: Catalog, tokens: TokenFile) -> None:
    client = TestClient(build(Service(shop, access=tokens)), base_url=HERE)

    def rows(name: str) -> bool:
        asked = {"sql": "SELECT count(*) FROM shop.orders"}
        answer = client.post(f"{API}/sql", json=asked, headers=signed_in(client, name)).json()
        return bool(answer["ok"])

    assert rows("reader")
    assert not rows("stranger")


@pytest.mark.parametrize(
    "headers",
    [
        {"x-frazil-session": ""},
        {"x-frazil-session": "0" * 64},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"content-type": "text/plain"},
        {"host": "evil.example"},
    ],
)
def test_other_pages_change_nothing(headers: dict[str, str], shop: Catalog) -> None:
    client = browse(shop)
    body = b'{"params": {"name": "mine"}}'
    own = {"content-type": "application/json", "origin": HERE}
    assert client.post(f"{ORDERS}/actions/tag", content=body, headers=own).status_code == 200
    refused = client.post(f"{ORDERS}/actions/tag", content=body, headers=own | headers)
    assert refused.status_code == 403


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8181", 200),
        ("localhost:9", 200),
        ("[::1]:9", 200),
        ("lake.example", 200),
        ("evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost.evil.example", 403),
    ],
)
def test_a_name_that_was_made_to_point_here_reads_nothing(
    host: str, status: int, shop: Catalog
) -> None:
    client = browse(shop, Settings(names=("lake.example",)))
    assert client.get(f"{API}/catalog", headers={"host": host}).status_code == status


def test_a_read_only_server_changes_nothing(shop: Catalog) -> None:
    client = browse(shop, Settings(is_read_only=True, sql_writes=True))
    assert client.post(f"{ORDERS}/actions/tag", json=TAG).status_code == 403
    answer = client.post(f"{API}/sql", json={"sql": "DELETE FROM shop.orders"}).json()
    assert not answer["ok"]
    assert "read-only" in answer["error"]["message"]
    assert client.get(f"{ORDERS}/tree").status_code == 200


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('{file}')",
        "SELECT * FROM '{file}'",
        "SELECT * FROM read_csv('{file}')",
        "SELECT (SELECT content FROM read_text('{file}')) FROM shop.orders",
        "SELECT * FROM glob('{file}*')",
        "COPY shop.orders TO '{file}'",
        "ATTACH '{file}'",
        "DELETE FROM shop.orders",
        "DROP TABLE shop.orders",
    ],
)
def test_sql_reads_tables_and_nothing_else(sql: str, shop: Catalog, tmp_path: Path) -> None:
    file = tmp_path / "secret.csv"
    file.write_text("hunter2\n")
    answer = browse(shop).post(f"{API}/sql", json={"sql": sql.format(file=file)}).json()
    assert not answer["ok"]
    assert "hunter2" not in str(answer)
    assert file.read_text() == "hunter2\n"


def test_a_filter_reads_its_table_and_nothing_else(shop: Catalog, tmp_path: Path) -> None:
    file = tmp_path / "secret.csv"
    file.write_text("hunter2\n")
    where = f"exists (SELECT 1 FROM read_text('{file}'))"
    answer = browse(shop).get(f"{ORDERS}/rows", params={"where": where}).json()
    assert answer["rows"] == []
    assert "read_text may not be called here" in answer["error"]["message"]


def test_markup_in_names_stays_text(own: Catalog) -> None:
    name = "<script>alert(1)</script>"
    own.create_namespace(("<b>",))
    own.create_table(("<b>", name), own.load_table("shop.orders").schema)
    client = browse(own)
    listed = client.get(f"{API}/catalog", params={"search": "script"}).json()["tables"]
    assert (listed["levels"], listed["name"]) == ([["<b>"]], [name])
    shown = client.get(f"{API}/tables/%3Cb%3E/{'%3Cscript%3Ealert(1)%3C%2Fscript%3E'}/overview")
    assert shown.json()["name"] == name
    assert shown.headers["content-type"] == "application/json"
