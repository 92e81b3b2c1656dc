"""Ask the server of this container whether it can serve; the exit status is 0 if so, and the reason is printed if not.

It finds the server by the settings in the environment. With `LANCE_NAMESPACE_TLS_CLIENT_CA` the server talks to clients
with certificates alone: then it is enough that it takes connections.
"""

import http.client
import json
import os
import socket
import ssl
import sys

PREFIX = "LANCE_NAMESPACE_"


def problem() -> str:
    """What keeps the server from serving; empty if nothing does."""
    port = int(os.environ.get(f"{PREFIX}PORT", "2333"))
    if f"{PREFIX}TLS_CLIENT_CA" in os.environ:
        socket.create_connection(("127.0.0.1", port), timeout=4).close()
        return ""
    if f"{PREFIX}TLS_CERTIFICATE" in os.environ:
        # The certificate is for the name of the service, and this is the server of this container.
        unverified = ssl._create_unverified_context()  # noqa: SLF001
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            "127.0.0.1", port, timeout=4, context=unverified
        )
    else:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=4)
    connection.request("GET", "/health/ready", headers={"Host": host()})
    answer = connection.getresponse()
    return "" if answer.status == http.client.OK else f"status {answer.status}: {answer.read(500).decode()}"


def host() -> str:
    """A value of the Host header that the server allows."""
    allowed = os.environ.get(f"{PREFIX}ALLOWED_HOSTS", "").strip()
    names = json.loads(allowed) if allowed.startswith("[") else allowed.split(",")
    first = str(names[0]).strip() if names else ""
    return first.replace("*.", "health.") or "localhost"


if __name__ == "__main__":
    try:
        found = problem()
    except (OSError, http.client.HTTPException) as error:
        found = str(error) or type(error).__name__
    if found:
        print(found)
    sys.exit(bool(found))
