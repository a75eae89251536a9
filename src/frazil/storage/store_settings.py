"""Which object store an address names, and the settings that reach it.

Properties have PyIceberg's names (`s3.endpoint`, `gcs.oauth2.token`, `adls.account-name`, …) and
become those of obstore. What they leave out comes from the environment, as obstore reads it
(`AWS_REGION`, `GOOGLE_APPLICATION_CREDENTIALS`, `AZURE_STORAGE_ACCOUNT_KEY`, …). Credentials are
handed over by a function, so that no object of obstore shows or pickles them.
"""

from __future__ import annotations

import configparser
import os
from collections.abc import Callable, Mapping
from datetime import timedelta
from importlib import import_module
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from frazil.errors import InvalidInput, Unsupported
from frazil.extras import needed
from frazil.value_classes import frozen

Kind = Literal["s3", "gcs", "azure"]
Credentials = Callable[[], Mapping[str, Any]]

KINDS: Final[Mapping[str, Kind]] = {
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "gs": "gcs",
    "gcs": "gcs",
    "abfs": "azure",
    "abfss": "azure",
    "az": "azure",
    "wasb": "azure",
    "wasbs": "azure",
}
"""The schemes that obstore serves."""
PREFIXES: Final[Mapping[Kind, str]] = {"s3": "s3.", "gcs": "gcs.", "azure": "adls."}

_S3: Final = {
    "region": ("s3.region", "client.region"),
    "endpoint": ("s3.endpoint",),
    "skip_signature": ("s3.anonymous",),
    "virtual_hosted_style_request": ("s3.force-virtual-addressing",),
    "server_side_encryption": ("s3.server-side-encryption",),
    "sse_kms_key_id": ("s3.sse-kms-key-id",),
    "request_payer": ("s3.requester-pays",),
}
_GCS: Final = {"base_url": ("gcs.service.host",), "skip_signature": ("gcs.no-auth",)}
_AZURE: Final = {
    "account_name": ("adls.account-name",),
    "account_key": ("adls.account-key",),
    "sas_key": ("adls.sas-token",),
    "tenant_id": ("adls.tenant-id",),
    "client_id": ("adls.client-id",),
    "client_secret": ("adls.client-secret",),
    "token": ("adls.token",),
    "skip_signature": ("adls.anon",),
}
_FLAGS: Final = frozenset({"skip_signature", "virtual_hosted_style_request", "request_payer"})
_KEYS: Final = ("access-key-id", "secret-access-key", "session-token")
_CONNECTION: Final = {
    "accountname": "account_name",
    "accountkey": "account_key",
    "sharedaccesssignature": "sas_key",
    "blobendpoint": "endpoint",
}


@frozen
class StoreSettings:
    """What obstore's constructors take. Its repr shows no secret."""

    kind: Kind
    bucket: str
    config: Mapping[str, Any]
    client: Mapping[str, Any]
    retries: Mapping[str, Any]
    credentials: Credentials | None = None

    def __repr__(self) -> str:
        return f"StoreSettings({self.kind}, {self.bucket!r})"

    @property
    def endpoint(self) -> str:
        """Where requests go, for messages."""
        return str(self.config.get("endpoint") or self.config.get("base_url") or self.kind)


def store_settings(scheme: str, authority: str, properties: Mapping[str, str]) -> StoreSettings:
    """The settings of the store that `scheme://authority` names."""
    kind = KINDS[scheme]
    build = {"s3": _s3, "gcs": _gcs, "azure": _azure}[kind]
    bucket, config, credentials = build(authority, properties)
    prefix = PREFIXES[kind]
    provider = properties.get(f"{prefix}credentials-provider")
    if provider is None and kind == "s3":
        provider = properties.get("client.credentials-provider")
    if provider is not None:
        credentials = _provider(provider)
    return StoreSettings(
        kind=kind,
        bucket=bucket,
        config=config,
        client=_client(config, properties, prefix),
        retries=_retries(properties, prefix),
        credentials=credentials,
    )


# --- S3 ----------------------------------------------------------------------------------------


def _s3(
    bucket: str, properties: Mapping[str, str]
) -> tuple[str, dict[str, Any], Credentials | None]:
    if properties.get("s3.signer") or properties.get("s3.remote-signing-enabled") == "true":
        raise Unsupported(
            "s3.signer: requests signed by a catalog server are not supported; "
            "give keys (s3.access-key-id, …) or a provider (s3.credentials-provider)",
            feature="s3.signer",
        )
    config = _mapped(_S3, properties)
    if "s3.path-style-access" in properties:
        config["virtual_hosted_style_request"] = not _flag(properties, "s3.path-style-access")
    return bucket, config, _s3_credentials(properties, config)


def _s3_credentials(properties: Mapping[str, str], config: Mapping[str, Any]) -> Credentials | None:
    key, secret, token = (
        properties.get(f"s3.{name}") or properties.get(f"client.{name}") for name in _KEYS
    )
    if bool(key) != bool(secret):
        missing = "s3.secret-access-key" if key else "s3.access-key-id"
        raise InvalidInput(f"{missing} is missing: an access key has an id and a secret")
    role = properties.get("s3.role-arn") or properties.get("client.role-arn")
    if role:
        session = properties.get("s3.role-session-name") or properties.get(
            "client.role-session-name", "frazil"
        )
        return _assumed_role(role, session, (key, secret, token), config.get("region"))
    if key and secret:
        # A token of the environment belongs to the environment's key.
        return lambda: {
            "access_key_id": key,
            "secret_access_key": secret,
            "token": token,
            "expires_at": None,
        }
    profile = properties.get("s3.profile-name") or properties.get("client.profile-name")
    if config.get("skip_signature") or (not profile and _in_environment()):
        return None
    return _of_profile(profile or os.environ.get("AWS_PROFILE"))


def _in_environment() -> bool:
    """Whether obstore finds credentials by itself before it would ask a machine's service."""
    names = ("AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE")
    return any(os.environ.get(name) for name in (*names, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"))


def _of_profile(profile: str | None) -> Credentials | None:
    """Credentials of `~/.aws`; a profile without keys (single sign-on, a role) needs boto3."""
    path = os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or os.path.expanduser("~/.aws/credentials")
    parser = configparser.RawConfigParser()
    parser.read(path)
    name = profile or "default"
    if parser.has_option(name, "aws_access_key_id"):
        section = parser[name]
        return lambda: {
            "access_key_id": section["aws_access_key_id"],
            "secret_access_key": section.get("aws_secret_access_key", ""),
            "token": section.get("aws_session_token"),
            "expires_at": None,
        }
    if profile is None:
        return None
    boto3 = needed("boto3", f"the AWS profile {profile!r}")
    from obstore.auth.boto3 import Boto3CredentialProvider

    provider: Credentials = Boto3CredentialProvider(boto3.Session(profile_name=profile))
    return provider


def _assumed_role(
    role: str,
    session_name: str,
    keys: tuple[str | None, str | None, str | None],
    region: str | None,
) -> Credentials:
    boto3 = needed("boto3", "assuming a role (s3.role-arn)")
    from obstore.auth.boto3 import StsCredentialProvider

    session = boto3.Session(
        aws_access_key_id=keys[0],
        aws_secret_access_key=keys[1],
        aws_session_token=keys[2],
        region_name=region,
    )
    provider: Credentials = StsCredentialProvider(
        session, RoleArn=role, RoleSessionName=session_name
    )
    return provider


# --- GCS and Azure -----------------------------------------------------------------------------


def _gcs(
    bucket: str, properties: Mapping[str, str]
) -> tuple[str, dict[str, Any], Credentials | None]:
    token = properties.get("gcs.oauth2.token")
    config = _mapped(_GCS, properties)
    if not token:
        return bucket, config, None
    # The end of a token is not known to obstore: it would ask for another one, and there is none.
    return bucket, config, lambda: {"token": token, "expires_at": None}


def _azure(
    authority: str, properties: Mapping[str, str]
) -> tuple[str, dict[str, Any], Credentials | None]:
    container, _, host = authority.partition("@")
    config = _mapped(_AZURE, properties)
    for part in properties.get("adls.connection-string", "").split(";"):
        name, _, value = part.partition("=")
        setting = _CONNECTION.get(name.strip().lower())
        if setting:
            config.setdefault(setting, value)
    if host:
        config.setdefault("account_name", host.partition(".")[0])
    account = config.get("account_name") or os.environ.get("AZURE_STORAGE_ACCOUNT_NAME")
    if not account:
        raise InvalidInput(
            f"{container}: the storage account is not named; write "
            "abfss://container@account.dfs.core.windows.net/path or set adls.account-name"
        )
    config["account_name"] = account
    scheme = properties.get("adls.blob-storage-scheme", "https")
    blob_authority = properties.get("adls.blob-storage-authority")
    if blob_authority:
        is_suffix = blob_authority.startswith(".")
        config["endpoint"] = (
            f"{scheme}://{account}{blob_authority}"
            if is_suffix
            else (f"{scheme}://{blob_authority}/{account}")
        )
    elif properties.get("adls.account-host"):
        config["endpoint"] = f"{scheme}://{properties['adls.account-host']}"
    elif "." in host and "endpoint" not in config:
        config["endpoint"] = f"{scheme}://{host.replace('.dfs.', '.blob.', 1)}"
    return container, config, None


# --- what all of them have ---------------------------------------------------------------------


def _mapped(names: Mapping[str, tuple[str, ...]], properties: Mapping[str, str]) -> dict[str, Any]:
    config: dict[str, Any] = {}
    for setting, keys in names.items():
        for key in keys:
            if properties.get(key):
                is_flag = setting in _FLAGS
                config[setting] = _flag(properties, key) if is_flag else properties[key]
                break
    return config


def _flag(properties: Mapping[str, str], key: str) -> bool:
    value = str(properties[key]).strip().lower()
    if value not in ("true", "false"):
        raise InvalidInput(f"{key} is {properties[key]!r}; expected true or false")
    return value == "true"


def _number(properties: Mapping[str, str], key: str, default: float) -> float:
    value = properties.get(key)
    try:
        number = default if value is None else float(value)
    except ValueError:
        number = -1.0
    if number < 0:
        raise InvalidInput(f"{key} is {value!r}; expected a number that is not negative")
    return number


def _client(
    config: Mapping[str, Any], properties: Mapping[str, str], prefix: str
) -> dict[str, Any]:
    endpoint = config.get("endpoint") or config.get("base_url") or _environment_endpoint(prefix)
    if endpoint and urlsplit(endpoint).scheme not in ("http", "https"):
        raise InvalidInput(f"the endpoint {endpoint!r} is not an address; write https://host:port")
    client: dict[str, Any] = {
        "allow_http": bool(endpoint and endpoint.startswith("http://")),
        "connect_timeout": timedelta(seconds=_number(properties, f"{prefix}connect-timeout", 10)),
        # Counted anew with each piece that arrives: a large object may take long, a stuck one not.
        "read_timeout": timedelta(seconds=_number(properties, f"{prefix}request-timeout", 60)),
        "timeout": timedelta(minutes=10),
    }
    proxy = properties.get(f"{prefix}proxy-uri")
    if proxy:
        client["proxy_url"] = proxy
    return client


def _environment_endpoint(prefix: str) -> str | None:
    if prefix != "s3.":
        return None
    names = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
    return next((os.environ[name] for name in names if os.environ.get(name)), None)


def _retries(properties: Mapping[str, str], prefix: str) -> dict[str, Any]:
    return {
        "max_retries": int(_number(properties, f"{prefix}retry.num-retries", 6)),
        "retry_timeout": timedelta(minutes=2),
        "backoff": {
            "init_backoff": timedelta(
                milliseconds=_number(properties, f"{prefix}retry.min-wait-ms", 100)
            ),
            "max_backoff": timedelta(
                milliseconds=_number(properties, f"{prefix}retry.max-wait-ms", 10_000)
            ),
            "base": 2,
        },
    }


def _provider(name: str) -> Credentials:
    """A provider by its address `module:name`; a class is called once, without arguments."""
    module, colon, attribute = name.partition(":")
    try:
        provider = getattr(import_module(module), attribute) if colon else None
    except (ImportError, AttributeError) as error:
        raise InvalidInput(
            f"the credentials provider {name!r} cannot be loaded: {error}"
        ) from error
    if isinstance(provider, type):
        provider = provider()
    if not callable(provider):
        raise InvalidInput(
            f"the credentials provider is {name!r}; expected module:name of a function that "
            "returns credentials, or of a class without arguments"
        )
    credentials: Credentials = provider
    return credentials
