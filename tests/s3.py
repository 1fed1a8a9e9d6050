"""An S3 server on loopback, and what a pod gets from its secret to use it."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

import s3fs
from moto.server import ThreadedMotoServer

BUCKET = "castell-tests"
KEYS = {"AWS_ACCESS_KEY_ID": "anybody", "AWS_SECRET_ACCESS_KEY": "secret"}
# Nothing of this machine's settings.
SETTINGS = {
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_DEFAULT_REGION": "us-east-1",
}


@contextmanager
def s3_server(listen: str = "127.0.0.1") -> Iterator[str]:
    """Yields the URL of a server with an empty bucket `BUCKET`; listen: 0.0.0.0 for containers."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address=listen, port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    url = f"http://127.0.0.1:{port}"
    store = client(url)
    store.mkdir(BUCKET)
    try:
        yield url
    finally:
        store.rm(BUCKET, recursive=True)  # what it holds outlives it in this process
        server.stop()


def client(url: str) -> s3fs.S3FileSystem:
    """Returns a client that sees what others write at once."""
    key, secret = KEYS.values()
    return s3fs.S3FileSystem(endpoint_url=url, key=key, secret=secret, use_listings_cache=False)
