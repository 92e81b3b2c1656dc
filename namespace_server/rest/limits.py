"""The bounds that every request is held to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Sizes in bytes, times in seconds.

    `body` bounds the body of a change, `read_body` that of any other request; `buffered_bodies` bounds the larger
    bodies that are read, checked or committed at one time. `depth` is how deep lists and objects may be nested in a
    body, `values` how many values it may hold. `body_timeout` is the time from the headers of a request to the end of
    its body. `queue_capacity` bounds the changes that were accepted and not yet answered.
    """

    body: int = 64 << 20
    read_body: int = 1 << 20
    buffered_bodies: int = 256 << 20
    depth: int = 64
    values: int = 2_000_000
    body_timeout: float = 60.0
    queue_capacity: int = 4096
