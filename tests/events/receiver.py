"""A receiver of webhooks, as a process: it notes each message in a file, and answers as a list of statuses says.

    python -m tests.events.receiver DIRECTORY [CERTIFICATE KEY]

DIRECTORY/answers has lines `STATUS [HEADER VALUE]`, `slow SECONDS` or `hang-up`, one for each message; after the last
one it answers 204. DIRECTORY/received gets a line of JSON for each message, DIRECTORY/port the port.
"""

from __future__ import annotations

import json
import ssl
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


def main(directory: Path, *certificate: str) -> None:
    answers = iter(directory.joinpath("answers").read_text().splitlines())

    class Receiver(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            line = {"path": self.path, "headers": dict(self.headers.items()), "body": body, "at": time.time()}
            with directory.joinpath("received").open("a") as received:
                received.write(json.dumps(line) + "\n")
            status, *rest = next(answers, "204").split(maxsplit=2)
            if status == "hang-up":
                self.close_connection = True
                return
            if status == "slow":
                time.sleep(float(rest[0]))
                status, rest = "204", []
            self.send_response(int(status))
            if rest:
                self.send_header(rest[0], rest[1])
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        if certificate:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(*certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        directory.joinpath("port.new").write_text(str(server.server_port))
        directory.joinpath("port.new").rename(directory / "port")
        server.serve_forever()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
