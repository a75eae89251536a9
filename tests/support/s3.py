"""A real S3 API on loopback: moto's server, with a bucket."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

SECRET = "frazil-very-secret"


@dataclass(frozen=True, slots=True, kw_only=True)
class S3:
    """A bucket and the properties that reach it."""

    bucket: str
    properties: dict[str, str]

    @property
    def warehouse(self) -> str:
        """Where tables can go."""
        return f"s3://{self.bucket}/warehouse"


@contextmanager
def s3_server() -> Iterator[S3]:
    """Start the server, make a bucket, stop the server."""
    import boto3
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        _, port = server.get_host_and_port()
        endpoint = f"http://127.0.0.1:{port}"
        bucket = f"frazil-{uuid.uuid4().hex[:8]}"
        client = boto3.client(
            "s3",
            endpoint_url=endpoint,
            aws_access_key_id="frazil",
            aws_secret_access_key=SECRET,
            region_name="us-east-1",
        )
        client.create_bucket(Bucket=bucket)
        yield S3(
            bucket=bucket,
            properties={
                "s3.endpoint": endpoint,
                "s3.access-key-id": "frazil",
                "s3.secret-access-key": SECRET,
                "s3.region": "us-east-1",
            },
        )
    finally:
        server.stop()
