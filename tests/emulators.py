"""Object services on this machine, for tests that want a real protocol."""

import itertools
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import pytest

from tests.listener import listen

REPOSITORY = Path(__file__).parent.parent
AZURITE_ACCOUNT = "devstoreaccount1"
# The published key of every development account of the Azure emulators.
AZURITE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


_numbers = itertools.count()
"""Of the prefixes that tests get: services of one kind in this process share their objects."""


@dataclass(frozen=True)
class Emulator:
    """A running service with one bucket. `storage_options` are what pylance and `open_store` take."""

    scheme: str
    storage_options: dict[str, str]
    bucket: str = "catalog"
    requests: list[tuple[str, str]] = field(default_factory=list)
    """Every HTTP request since the start, as (method, path); only of services that run in this process."""

    def new_root(self) -> str:
        """The URI of an unused prefix."""
        return f"{self.scheme}://{self.bucket}/root-{next(_numbers)}/with space"

    @contextmanager
    def counted(self) -> Iterator[list[str]]:
        """The methods of the requests made inside."""
        before = len(self.requests)
        methods: list[str] = []
        yield methods
        methods += [method for method, _ in self.requests[before:]]


@pytest.fixture(scope="session")
def moto_server() -> Iterator[Emulator]:
    """S3, by moto, in a thread of this process."""
    with s3_service("catalog") as emulator:
        yield emulator


@pytest.fixture(scope="session")
def unconditional_s3() -> Iterator[Emulator]:
    """A service that speaks S3's protocol and knows no conditional PUT, as not all of them do."""
    with s3_service("plain", refuses_conditions=True) as emulator:
        yield emulator


Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def _writing_in_turn(application: Wsgi) -> Wsgi:
    """The same with writes one at a time: moto looks at a condition and then writes, which threads must not share."""
    lock = threading.Lock()

    def serve(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] in {"GET", "HEAD"}:
            return application(environ, start_response)
        with lock:
            return list(application(environ, start_response))

    return serve


@contextmanager
def s3_service(
    bucket: str, *, refuses_conditions: bool = False, guard: Callable[[Wsgi], Wsgi] = lambda application: application
) -> Iterator[Emulator]:
    """A service with one bucket. `guard` stands in front of it."""
    import boto3
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        def log(self, type: str, message: str, *args: object) -> None:  # noqa: A002
            pass

    requests: list[tuple[str, str]] = []
    application = guard(_writing_in_turn(DomainDispatcherApplication(create_backend_app)))

    def count(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        requests.append((environ["REQUEST_METHOD"], environ["PATH_INFO"]))
        if refuses_conditions and not {"HTTP_IF_NONE_MATCH", "HTTP_IF_MATCH"}.isdisjoint(environ):
            requests.append(("conditional", environ["PATH_INFO"]))
            start_response("501 Not Implemented", [("Content-Length", "0")])
            return [b""]
        return application(environ, start_response)

    server = make_server("127.0.0.1", 0, count, threaded=True, request_handler=Quiet)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    endpoint = f"http://127.0.0.1:{server.port}"
    options = {
        "allow_http": "true",
        "aws_endpoint": endpoint,
        "aws_access_key_id": "key",
        "aws_secret_access_key": "secret",
        "aws_region": "us-east-1",
    }
    emulator = Emulator("s3", options, bucket, requests=requests)
    client = boto3.client(
        "s3", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="key", aws_secret_access_key="secret"
    )
    client.create_bucket(Bucket=emulator.bucket)
    client.close()
    yield emulator
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="session")
def azurite() -> Iterator[Emulator]:
    """Azure blob storage, by azurite, in a process of its own."""
    from azure.storage.blob import BlobServiceClient

    installed = subprocess.run([REPOSITORY / "scripts/azurite.sh"], capture_output=True, text=True, check=False)
    if installed.returncode:
        pytest.skip(f"azurite: {installed.stderr.strip().splitlines()[-1]}")
    node = shutil.which("node")
    assert node is not None
    arguments = (
        "--silent --skipApiVersionCheck --inMemoryPersistence --disableTelemetry --blobHost 127.0.0.1 --blobPort 0"
    )
    command = [node, installed.stdout.strip(), *arguments.split()]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        endpoint = f"{_listening(process)}/{AZURITE_ACCOUNT}"
        options = {
            "allow_http": "true",
            "azure_storage_account_name": AZURITE_ACCOUNT,
            "azure_storage_account_key": AZURITE_KEY,
            "azure_endpoint": endpoint,
        }
        emulator = Emulator("az", options)
        with BlobServiceClient(
            endpoint, credential={"account_name": AZURITE_ACCOUNT, "account_key": AZURITE_KEY}
        ) as client:
            client.create_container(emulator.bucket)
        yield emulator
    finally:
        process.terminate()
        process.communicate()


def _listening(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    said: list[str] = []
    for line in process.stdout:
        said.append(line)
        if found := re.search(r"listens on (http://\S+)", line):
            return found[1]
    raise RuntimeError(f"azurite ended: {''.join(said)}")


@dataclass
class _GcsObject:
    data: bytes
    generation: int
    updated: str


class Gcs:
    """The part of the JSON API that the store uses, with preconditions that hold under concurrency.

    And that of the XML API by which Lance writes files: whole, or in parts.
    """

    def __init__(self, bucket: str = "catalog") -> None:
        self.lock = threading.Lock()
        self.bucket = bucket
        self.parts: dict[str, dict[int, bytes]] = {}
        self.objects: dict[str, _GcsObject] = {}
        self.generations = itertools.count(1)
        self.page_size = 100

    def upload(self, name: str, data: bytes, query: Mapping[str, str]) -> tuple[int, dict[str, object]]:
        with self.lock:
            found = self.objects.get(name)
            expected = query.get("ifGenerationMatch")
            if expected is not None and int(expected) != (found.generation if found else 0):
                return 412, _refusal(412, "conditionNotMet")
            updated = datetime.now(UTC).isoformat().replace("+00:00", "Z")
            self.objects[name] = _GcsObject(data, next(self.generations), updated)
            return 200, self.resource(name)

    def rewrite(self, source: str, target: str, query: Mapping[str, str]) -> tuple[int, dict[str, object]]:
        found = self.objects.get(source)
        if found is None:
            return 404, _refusal(404, "no such object")
        if len(found.data) > 1 << 20 and query.get("rewriteToken") != source:
            return 200, {"done": False, "rewriteToken": source}
        return 200, {"done": True, "resource": self.upload(target, found.data, {})[1]}

    def resource(self, name: str) -> dict[str, object]:
        found = self.objects[name]
        sizes = {"size": str(len(found.data)), "generation": str(found.generation)}
        return {"name": name, "updated": found.updated, **sizes}

    def list(self, query: Mapping[str, str]) -> dict[str, object]:
        """With a delimiter, keys that hold it after the prefix are replaced by their beginning up to it."""
        start, prefix = query.get("pageToken") or query.get("startOffset", ""), query.get("prefix", "")
        delimiter = query.get("delimiter")
        with self.lock:
            names = {name: False for name in self.objects if name.startswith(prefix)}
            if delimiter:
                cuts = {name: name.find(delimiter, len(prefix)) for name in names}
                names = {name if cut < 0 else name[: cut + 1]: cut >= 0 for name, cut in cuts.items()}
            found = sorted((item for item in names.items() if item[0] >= start), key=lambda item: item[0].encode())
            size = min(self.page_size, int(query.get("maxResults", self.page_size)))
            page: dict[str, object] = {
                "kind": "storage#objects",
                "items": [self.resource(name) for name, is_prefix in found[:size] if not is_prefix],
                "prefixes": [name for name, is_prefix in found[:size] if is_prefix],
            }
        return page | ({"nextPageToken": found[size][0]} if len(found) > size else {})

    def answer(
        self, command: str, target: str, headers: Mapping[str, str], data: bytes
    ) -> tuple[int, bytes | dict[str, object]]:
        """Status and body for a request."""
        parts = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        if parts.path.startswith(f"/{self.bucket}/"):
            return self.write(command, unquote(parts.path.removeprefix(f"/{self.bucket}/")), query, data)
        place, _, copied = parts.path.partition("/rewriteTo/")
        name = unquote(place.partition("/o/")[2])
        if copied:
            return self.rewrite(name, unquote(copied.partition("/o/")[2]), query)
        if command == "POST":
            return self.upload(query["name"], data, query)
        if not name:
            return 200, self.list(query)
        if name not in self.objects:
            return 404, _refusal(404, "no such object")
        if command == "DELETE":
            return self.remove(name, query.get("ifGenerationMatch"))
        if query.get("alt") == "media":
            return self.media(name, headers.get("Range"))
        return 200, self.resource(name)

    def write(self, command: str, name: str, query: Mapping[str, str], data: bytes) -> tuple[int, bytes]:
        """A request of the XML API."""
        upload, part = query.get("uploadId"), query.get("partNumber")
        if command == "PUT" and upload is None:
            self.upload(name, data, {})
        elif command == "PUT" and part is not None:
            self.parts[upload or ""][int(part)] = data
        elif command == "POST" and "uploads" in query:
            upload = f"upload-{next(self.generations)}"
            self.parts[upload] = {}
            return 200, _xml("InitiateMultipartUploadResult", Bucket=self.bucket, Key=name, UploadId=upload)
        elif command == "POST":
            parts = self.parts.pop(upload or "")
            self.upload(name, b"".join(parts[number] for number in sorted(parts)), {})
            return 200, _xml("CompleteMultipartUploadResult", Location="", Bucket=self.bucket, Key=name, ETag="whole")
        else:
            return 400, b""
        return 200, b""

    def remove(self, name: str, wanted: str | None = None) -> tuple[int, bytes | dict[str, object]]:
        with self.lock:
            there = self.objects.get(name)
            if wanted is not None and there is not None and str(there.generation) != wanted:
                return 412, _refusal(412, "conditionNotMet")
            self.objects.pop(name, None)
        return 204, b""

    def media(self, name: str, limits: str | None) -> tuple[int, bytes | dict[str, object]]:
        data = self.objects[name].data
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", limits or "")
        if found is None:
            return 200, data
        if int(found[1]) >= len(data):
            return 416, _refusal(416, "range")
        return 206, data[int(found[1]) : int(found[2]) + 1]


def _xml(kind: str, **fields: str) -> bytes:
    inner = "".join(f"<{name}>{escape(value)}</{name}>" for name, value in fields.items())
    return f'<?xml version="1.0" encoding="UTF-8"?><{kind}>{inner}</{kind}>'.encode()


def _refusal(code: int, message: str) -> dict[str, object]:
    return {"error": {"code": code, "message": message}}


@pytest.fixture(scope="session")
def fake_gcs() -> Iterator[Emulator]:
    """Google Cloud Storage as its documentation describes it: no emulator at hand knows preconditions."""
    service = Gcs()
    requests: list[tuple[str, str]] = []

    def answer(request: BaseHTTPRequestHandler) -> None:
        requests.append((request.command, request.path))
        data = request.rfile.read(int(request.headers.get("Content-Length", 0)))
        status, content = service.answer(request.command, request.path, request.headers, data)
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        request.send_response(status)
        request.send_header("Content-Length", str(len(body)))
        request.send_header("ETag", '"of the answer"')
        request.end_headers()
        request.wfile.write(body)

    with listen(answer) as url:
        # Lance knows another address only in a key, of which it then wants nothing else.
        key = {"gcs_base_url": url, "disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""}
        options = {"allow_http": "true", "google_skip_signature": "true", "google_base_url": url}
        options["google_service_account_key"] = json.dumps(key)
        yield Emulator("gs", options, requests=requests)
