"""What properties and the environment say about an object store."""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from frazil import extras
from frazil.errors import InvalidInput, StorageError, Unsupported
from frazil.storage import objects, storage_for
from frazil.storage.file_io import FileIOStorage
from frazil.storage.objects import ObjectStorage
from frazil.storage.store_settings import StoreSettings, store_settings

KEYS = {"s3.access-key-id": "me", "s3.secret-access-key": "hush"}


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith(("AWS_", "AZURE_", "GOOGLE_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))


def s3(properties: Mapping[str, str]) -> StoreSettings:
    return store_settings("s3", "bucket", properties)


def credentials(settings: StoreSettings) -> Mapping[str, Any]:
    assert settings.credentials is not None
    return settings.credentials()


def test_properties_of_s3_have_the_names_of_pyiceberg() -> None:
    settings = s3(
        {
            **KEYS,
            "s3.endpoint": "http://127.0.0.1:7070",
            "s3.region": "eu-west-1",
            "s3.session-token": "brief",
            "s3.connect-timeout": "3",
        }
    )
    assert settings.bucket == "bucket"
    assert settings.config == {"endpoint": "http://127.0.0.1:7070", "region": "eu-west-1"}
    assert settings.client["allow_http"] is True
    assert settings.client["connect_timeout"].total_seconds() == 3
    assert credentials(settings) == {
        "access_key_id": "me",
        "secret_access_key": "hush",
        "token": "brief",
        "expires_at": None,
    }


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"s3.path-style-access": "true"}, False),
        ({"s3.path-style-access": "false"}, True),
        ({"s3.force-virtual-addressing": "true"}, True),
        ({"s3.force-virtual-addressing": "False"}, False),
    ],
)
def test_the_style_of_addresses(properties: dict[str, str], expected: bool) -> None:
    assert s3({**KEYS, **properties}).config["virtual_hosted_style_request"] is expected


def test_a_token_of_the_environment_does_not_join_a_key_of_the_properties(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of another key")
    assert credentials(s3(KEYS))["token"] is None


def test_keys_of_the_environment_are_left_to_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "me")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")
    assert s3({}).credentials is None


def test_keys_of_a_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "credentials").write_text(
        "[default]\naws_access_key_id = one\naws_secret_access_key = 1\n"
        "[work]\naws_access_key_id = two\naws_secret_access_key = 2%\naws_session_token = t\n"
    )
    assert credentials(s3({}))["access_key_id"] == "one"
    named = credentials(s3({"s3.profile-name": "work"}))
    assert (named["access_key_id"], named["secret_access_key"], named["token"]) == (
        "two",
        "2%",
        "t",
    )
    monkeypatch.setenv("AWS_PROFILE", "work")
    assert credentials(s3({}))["access_key_id"] == "two"


def vault() -> dict[str, Any]:
    return {"access_key_id": "from", "secret_access_key": "a vault", "expires_at": None}


class Rotating:
    def __call__(self) -> dict[str, Any]:
        return vault()


@pytest.mark.parametrize("name", ["vault", "Rotating"])
def test_a_provider_by_its_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    provider = f"{Path(__file__).stem}:{name}"
    for key in ("s3.credentials-provider", "client.credentials-provider"):
        assert credentials(s3({key: provider}))["access_key_id"] == "from"


@pytest.mark.parametrize(
    ("properties", "problem"),
    [
        ({"s3.access-key-id": "me"}, "s3.secret-access-key is missing"),
        ({"s3.secret-access-key": "hush"}, "s3.access-key-id is missing"),
        ({**KEYS, "s3.anonymous": "perhaps"}, "s3.anonymous is 'perhaps'; expected true or false"),
        ({**KEYS, "s3.connect-timeout": "soon"}, "s3.connect-timeout is 'soon'; expected a number"),
        ({**KEYS, "s3.endpoint": "127.0.0.1:9"}, "write https://host:port"),
        ({"s3.credentials-provider": "nowhere:x"}, "'nowhere:x' cannot be loaded"),
        ({"s3.credentials-provider": "os.path"}, "expected module:name"),
    ],
)
def test_what_cannot_be_meant_is_refused(properties: dict[str, str], problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        s3(properties)


def test_signatures_of_a_server_are_refused() -> None:
    with pytest.raises(Unsupported, match=r"s3\.signer"):
        s3({"s3.signer": "S3V4RestSigner"})


def test_a_token_for_gcs() -> None:
    settings = store_settings("gs", "bucket", {"gcs.oauth2.token": "t"})
    assert (settings.kind, settings.bucket) == ("gcs", "bucket")
    assert credentials(settings) == {"token": "t", "expires_at": None}


AZURE: dict[str, tuple[str, dict[str, str], dict[str, str]]] = {
    "address": (
        "box@shop.dfs.core.windows.net",
        {"adls.account-key": "a2V5"},
        {
            "account_name": "shop",
            "account_key": "a2V5",
            "endpoint": "https://shop.blob.core.windows.net",
        },
    ),
    "account": ("box", {"adls.account-name": "shop"}, {"account_name": "shop"}),
    "connection": (
        "box",
        {
            "adls.connection-string": "DefaultEndpointsProtocol=http;AccountName=shop;"
            "AccountKey=a2V5==;BlobEndpoint=http://127.0.0.1:10000/shop;"
        },
        {
            "account_name": "shop",
            "account_key": "a2V5==",
            "endpoint": "http://127.0.0.1:10000/shop",
        },
    ),
    "authority": (
        "box@shop.dfs.core.windows.net",
        {
            "adls.blob-storage-authority": "127.0.0.1:10000",
            "adls.blob-storage-scheme": "http",
            "adls.sas-token": "sv=1&sig=x",
        },
        {
            "account_name": "shop",
            "sas_key": "sv=1&sig=x",
            "endpoint": "http://127.0.0.1:10000/shop",
        },
    ),
    "suffix": (
        "box",
        {"adls.account-name": "shop", "adls.blob-storage-authority": ".blob.core.chinacloudapi.cn"},
        {"account_name": "shop", "endpoint": "https://shop.blob.core.chinacloudapi.cn"},
    ),
}


@pytest.mark.parametrize("what", AZURE)
def test_accounts_of_azure(what: str) -> None:
    authority, properties, config = AZURE[what]
    settings = store_settings("abfss", authority, properties)
    assert settings.bucket == "box"
    assert settings.config == config


def test_an_account_that_is_not_named_is_asked_for() -> None:
    with pytest.raises(InvalidInput, match=r"abfss://container@account"):
        store_settings("abfss", "box", {})


def test_no_settings_show_a_secret() -> None:
    settings = store_settings(
        "abfss", "box@shop.dfs.core.windows.net", {"adls.account-key": "hush"}
    )
    assert "hush" not in repr(settings)
    assert "hush" not in repr(s3(KEYS))


@pytest.mark.parametrize(
    "location", ["s3://b/x", "s3a://b/x", "gs://b/x", "abfss://c@a.dfs.core.windows.net/x"]
)
def test_the_scheme_chooses_the_client(location: str) -> None:
    properties = {**KEYS, "gcs.oauth2.token": "t", "adls.account-key": "a2V5"}
    storage = storage_for(location, properties)
    assert isinstance(storage, ObjectStorage)
    assert isinstance(pickle.loads(pickle.dumps(storage)), ObjectStorage)
    named = {**properties, "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO"}
    assert isinstance(storage_for(location, named), FileIOStorage)


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with pytest.raises(Unsupported, match=r"needs obstore.*pip install 'frazil\[objects\]'"):
        storage_for("s3://b/x", KEYS)


def test_a_forked_process_is_told_to_be_spawned(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = storage_for("s3://b/x", KEYS)
    monkeypatch.setattr(objects, "_first_process", [os.getppid()])
    with pytest.raises(StorageError, match="'spawn'"):
        storage.read("s3://b/x/y")
