"""Object stores on loopback: versitygw and MinIO for S3, azurite for Azure, a small one of ours for
GCS.

versitygw is a program in Go that `make setup-dev` builds into `~/.cache/frazil/bin`, MinIO one that
`make soak` builds there; azurite comes with npm. Tests that need one that is not installed are
skipped, with how to install it.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

SECRET = "frazil-very-secret"
PROGRAMS = Path("~/.cache/frazil/bin").expanduser()
VERSITYGW = PROGRAMS / "versitygw"
MINIO = PROGRAMS / "minio"
AZURITE = Path(__file__).parents[2] / "tools" / "object_servers" / "node_modules" / ".bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """A bucket of a running server, and the properties that reach it."""

    scheme: str
    name: str
    properties: dict[str, str] = field(repr=False)

    @property
    def warehouse(self) -> str:
        """Where tables can go."""
        return f"{self.scheme}://{self.name}/warehouse"

    @property
    def endpoint(self) -> str:
        """Where the server listens."""
        return self.properties["s3.endpoint"]

    def client(self) -> Any:
        """boto3's client for an S3 server, to look at it from outside."""
        import boto3

        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=self.properties["s3.access-key-id"],
            aws_secret_access_key=self.properties["s3.secret-access-key"],
            region_name=self.properties["s3.region"],
        )

    def incomplete_uploads(self) -> list[str]:
        """Keys of multipart uploads that were neither completed nor aborted."""
        answer = self.client().list_multipart_uploads(Bucket=self.name)
        return [upload["Key"] for upload in answer.get("Uploads", ())]


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def versitygw() -> Iterator[Bucket]:
    """A real S3 server whose conditional writes are atomic, with one bucket."""
    if not VERSITYGW.exists():
        pytest.skip(f"{VERSITYGW} is not there: `make setup-dev` builds it")
    folder = _folder_with_attributes()
    port = free_port()
    environment = {**os.environ, "ROOT_ACCESS_KEY": "frazil", "ROOT_SECRET_KEY": SECRET}
    name = f"frazil-{uuid.uuid4().hex[:8]}"
    (folder / name).mkdir()
    command = [VERSITYGW, "--port", f"127.0.0.1:{port}", "--quiet", "posix", folder]
    with _running(command, environment, port):
        yield _s3_bucket(name, port)
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def minio() -> Iterator[Bucket]:
    """Another real S3 server, with one bucket."""
    if not MINIO.exists():
        pytest.skip(f"{MINIO} is not there: `make soak` builds it")
    folder = Path(tempfile.mkdtemp(prefix="frazil-minio-"))
    port = free_port()
    environment = {**os.environ, "MINIO_ROOT_USER": "frazil", "MINIO_ROOT_PASSWORD": SECRET}
    environment |= {"MINIO_BROWSER": "off", "MINIO_UPDATE": "off"}
    name = f"frazil-{uuid.uuid4().hex[:8]}"
    command = [MINIO, "server", "--quiet", "--address", f"127.0.0.1:{port}", folder]
    with _running(command, environment, port):
        bucket = _s3_bucket(name, port)
        _created(bucket)
        yield bucket
    shutil.rmtree(folder, ignore_errors=True)


def _s3_bucket(name: str, port: int) -> Bucket:
    return Bucket(
        scheme="s3",
        name=name,
        properties={
            "s3.endpoint": f"http://127.0.0.1:{port}",
            "s3.access-key-id": "frazil",
            "s3.secret-access-key": SECRET,
            "s3.region": "us-east-1",
        },
    )


def _created(bucket: Bucket) -> None:
    """Create a bucket on a server that listens before it is ready."""
    from botocore.exceptions import BotoCoreError, ClientError

    until = time.monotonic() + 60
    while True:
        try:
            bucket.client().create_bucket(Bucket=bucket.name)
            return
        except (BotoCoreError, ClientError):
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def new_bucket(server: Bucket) -> Bucket:
    """Another bucket of the same S3 server."""
    name = f"frazil-{uuid.uuid4().hex[:8]}"
    server.client().create_bucket(Bucket=name)
    return Bucket(scheme=server.scheme, name=name, properties=dict(server.properties))


_AZURITE_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)


@contextmanager
def azurite() -> Iterator[Bucket]:
    """Microsoft's emulator of Azure Blob Storage, with one container."""
    program = AZURITE / "azurite-blob"
    if not program.exists():
        pytest.skip(f"{program} is not there: `make setup-dev` installs it")
    folder = Path(tempfile.mkdtemp(prefix="frazil-azurite-"))
    port = free_port()
    command = [program, "--silent", "--skipApiVersionCheck", "--disableTelemetry"]
    command += ["--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", folder]
    account = "devstoreaccount1"
    with _running(command, dict(os.environ), port):
        bucket = Bucket(
            scheme="abfss",
            name=f"box-{uuid.uuid4().hex[:8]}@{account}.dfs.core.windows.net",
            properties={
                "adls.account-name": account,
                "adls.account-key": _AZURITE_KEY,
                "adls.blob-storage-authority": f"127.0.0.1:{port}",
                "adls.blob-storage-scheme": "http",
            },
        )
        _create_container(f"http://127.0.0.1:{port}/{account}", bucket.name.partition("@")[0])
        yield bucket
    shutil.rmtree(folder, ignore_errors=True)


def _create_container(endpoint: str, container: str) -> None:
    """Create a container with a signed request: obstore cannot."""
    import base64
    import hashlib
    import hmac
    from email.utils import formatdate

    account = endpoint.rpartition("/")[2]
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
    named = "".join(f"{name}:{value}\n" for name, value in sorted(headers.items()))
    resource = f"/{account}/{account}/{container}\nrestype:container"
    text = "PUT" + "\n" * 12 + named + resource
    digest = hmac.digest(base64.b64decode(_AZURITE_KEY), text.encode(), hashlib.sha256)
    headers["Authorization"] = f"SharedKey {account}:{base64.b64encode(digest).decode()}"
    request = urllib.request.Request(
        f"{endpoint}/{container}?restype=container", method="PUT", headers=headers
    )
    urllib.request.urlopen(request, timeout=30).close()


@contextmanager
def _running(command: list[Any], environment: dict[str, str], port: int) -> Iterator[None]:
    process = subprocess.Popen(
        [str(part) for part in command],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        _wait_for(port, process)
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if process.poll() is not None:
                break
            time.sleep(0.05)
        else:
            return
    pytest.fail(f"the server did not start: {process.args!r}")


def _folder_with_attributes() -> Path:
    """A new folder where files can have extended attributes, which versitygw keeps ETags in."""
    for parent in (None, "/dev/shm", str(Path.home())):
        folder = Path(tempfile.mkdtemp(prefix="frazil-s3-", dir=parent))
        try:
            os.setxattr(folder, "user.frazil", b"x")
        except OSError:
            folder.rmdir()
        else:
            return folder
    pytest.skip("no folder here has extended attributes, which versitygw needs")
