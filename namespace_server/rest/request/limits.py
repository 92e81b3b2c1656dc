"""The bounds that every request is held to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DataLimits:
    """Bounds of operations on rows. Sizes in bytes, times in seconds.

    `change_workers` and `read_workers` are the processes that change and that read rows; `preload` says whether what
    they need is loaded at the start. `waiting` bounds the operations of each kind that wait for one. `body` bounds rows
    in a request, `query` the body of a query. `chunk_timeout` is the time between two pieces of rows in a request, and
    for a client to take the next piece of an answer. A request with rows has this time for all of them, and a second
    more for each `rate` bytes. `spool` bounds the rows that wait for slow clients in temporary files. `work_timeout` is
    the time that a worker may take for one step of a change, `query_timeout` that for the next rows of a read,
    `worker_memory` the memory that one may take; 0 is no bound. `worker_share` bounds the workers of each kind that the
    operations of one principal hold; 0 is two thirds.
    """

    change_workers: int = 2
    read_workers: int = 2
    preload: bool = False
    waiting: int = 64
    body: int = 16 << 30
    query: int = 16 << 20
    chunk_timeout: float = 60.0
    rate: int = 16 << 10
    spool: int = 64 << 30
    work_timeout: float = 3600.0
    query_timeout: float = 60.0
    worker_share: int = 0
    worker_memory: int = 0


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Sizes in bytes, times in seconds.

    `head` bounds the path and the headers of a request, `body` the body of a change, `read_body` that of any other
    request; `buffered_bodies` bounds the larger bodies that are read, checked or committed at one time. `depth` is how
    deep lists and objects may be nested in a body, `values` and `read_values` how many values it may hold. `operations`
    bounds the lists of a batch, `names` the parts of an id; both are counted before anything else is checked.
    `body_timeout` is the time from the headers of a request to the end of its body. `queue_capacity` bounds the changes
    that were accepted and not yet answered, `event_streams` the streams of events, and long polls for them, that are
    open. `data` bounds the operations on rows.

    `principal_requests`, `principal_changes` and `principal_upload` bound what one principal has under way: requests,
    changes of the catalog, and bytes of bodies; 0 is no bound.
    """

    head: int = 64 << 10
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
    event_streams: int = 128
    principal_requests: int = 0
    principal_changes: int = 0
    principal_upload: int = 0
    data: DataLimits = DataLimits()
