"""The bounds that every request is held to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Sizes in bytes, times in seconds.

    `body` bounds the body of a change, `read_body` that of any other request; `buffered_bodies` bounds the larger
    bodies that are read, checked or committed at one time. `depth` is how deep lists and objects may be nested in a
    body, `values` and `read_values` how many values it may hold. `operations` bounds the lists of a batch, `names` the
    parts of an id; both are counted before anything else is checked. `body_timeout` is the time from the headers of a
    request to the end of its body. `queue_capacity` bounds the changes that were accepted and not yet answered.
    """

    body: int = 64 << 20
    read_body: int = 1 << 20
    buffered_bodies: int = 256 << 20
    depth: int = 64
    values: int = 500_000
    read_values: int = 10_000
    names: int = 100
    operations: int = 10_000
    body_timeout: float = 60.0
    queue_capacity: int = 4096
