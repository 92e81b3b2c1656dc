"""Answers that are no whole listing: what they do not name is never taken for absent."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from lance_core.errors import StorageError
from lance_core.storage.bucket_store import RETRIES
from tests.storage.test_broken_services import open_service

pytestmark = pytest.mark.slow

_DATE = "2030-01-01T00:00:00Z"


def s3_page(*keys: str, end: str) -> str:
    items = "".join(
        f"<Contents><Key>{key}</Key><Size>1</Size><ETag>e</ETag><LastModified>{_DATE}</LastModified></Contents>"
        f"<CommonPrefixes><Prefix>{key}/</Prefix></CommonPrefixes>"
        for key in keys
    )
    return f'<?xml version="1.0"?><ListBucketResult>{items}{end}</ListBucketResult>'


def azure_page(*keys: str, end: str) -> str:
    properties = (
        "<Properties><Last-Modified>Tue, 01 Jan 2030 00:00:00 GMT</Last-Modified><Etag>0x7</Etag>"
        "<Content-Length>1</Content-Length><BlobType>BlockBlob</BlobType></Properties>"
    )
    blobs = "".join(f"<Blob><Name>{key}</Name>{properties}</Blob>" for key in keys)
    return f'<?xml version="1.0"?><EnumerationResults><Blobs>{blobs}</Blobs>{end}</EnumerationResults>'


def google_page(*keys: str, end: str, kind: str = '"kind": "storage#objects", ') -> str:
    items = ", ".join(f'{{"name": "{key}", "size": "1", "generation": "1", "updated": "{_DATE}"}}' for key in keys)
    return f'{{{kind}"prefixes": [], "items": [{items}]{end}}}'


MORE, LAST = "<IsTruncated>true</IsTruncated>", "<IsTruncated>false</IsTruncated>"
TOKEN = "<NextContinuationToken>t</NextContinuationToken>"
CUT = [
    ("s3", [s3_page("root/a", end=MORE)]),
    ("s3", [s3_page("root/a", end=f"{MORE}<NextContinuationToken/>")]),
    ("s3", [s3_page("root/a", end="")]),
    ("s3", [""]),
    ("s3", [s3_page("root/a", end=MORE + TOKEN), s3_page("root/b", end=MORE)]),
    ("s3", [s3_page("root/a", end=MORE + TOKEN)]),  # the same page for ever
    ("gs", [""]),
    ("gs", ["{}"]),
    ("gs", ["[]"]),
    ("gs", [google_page("root/a", end="", kind="")]),
    ("gs", [google_page("root/a", end=', "nextPageToken": "t"')]),
    ("az", [""]),
    ("az", [azure_page("root/a", end="<NextMarker>t</NextMarker>")]),
]
WHOLE = [
    ("s3", [s3_page("root/a", end=MORE + TOKEN), s3_page("root/b", end=LAST)]),
    ("s3", [s3_page("root/a", "root/b", end=LAST + TOKEN)]),
    ("gs", [google_page("root/a", end=', "nextPageToken": "t"'), google_page("root/b", end=', "nextPageToken": ""')]),
    ("az", [azure_page("root/a", end="<NextMarker>t</NextMarker>"), azure_page("root/b", end="<NextMarker/>")]),
]


class Listings:
    """A server whose answer to each request is the next page; the last one is repeated."""

    def __init__(self) -> None:
        self.pages: list[str] = []
        self.asked = 0
        listings = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # see tests/listener.py

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

            def do_GET(self) -> None:
                body = listings.pages[min(listings.asked, len(listings.pages) - 1)].encode()
                listings.asked += 1
                kind = "application/json" if body[:1] in {b"{", b"["} else "application/xml"
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True


@pytest.fixture(scope="module")
def server() -> Iterator[Listings]:
    listings = Listings()
    thread = threading.Thread(target=listings.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield listings
    listings.server.shutdown()
    thread.join()
    listings.server.server_close()


@pytest.fixture
def listings(server: Listings) -> Listings:
    server.asked = 0
    return server


@pytest.mark.parametrize(("kind", "pages"), CUT)
def test_a_listing_that_is_not_whole_is_an_error(listings: Listings, kind: str, pages: list[str]) -> None:
    store = open_service(kind, listings.server.server_port)
    listings.pages = pages
    for ask in (lambda: list(store.list("")), lambda: store.directories("")):
        listings.asked = 0
        with pytest.raises(StorageError):
            ask()
        assert listings.asked <= 1 + RETRIES + len(pages), "it ends, after the tries of one request"
    store.close()


@pytest.mark.parametrize(("kind", "pages"), WHOLE)
def test_a_whole_listing_is_all_of_its_pages(listings: Listings, kind: str, pages: list[str]) -> None:
    store = open_service(kind, listings.server.server_port)
    listings.pages = pages
    assert [meta.path for meta in store.list("")] == ["a", "b"]
    assert listings.asked == len(pages)
    store.close()
