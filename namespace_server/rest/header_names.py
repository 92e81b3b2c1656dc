"""Names of the headers that requests and answers have beside those of HTTP."""

from __future__ import annotations

from typing import Final

CATALOG_VERSION: Final = b"x-lance-catalog-version"
IDEMPOTENCY_KEY: Final = b"idempotency-key"
REQUEST_ID: Final = b"x-request-id"
FORWARDED_TO: Final = b"x-lance-forwarded-to"
"""The process that a change is handed to by another server of the same root."""
ANSWERED_BY: Final = b"x-lance-answered-by"
"""The process that answers a change that was handed to it."""
PEER_CHALLENGE: Final = b"x-lance-peer-challenge"
PEER_RESPONSE: Final = b"x-lance-peer-response"
"""The challenge with which another server asks this process for a proof of the secret, and the proof."""
HANDED_ORIGIN: Final = b"x-lance-origin"
"""Where a change came from that is handed over: address, user agent and request id, with a proof of the secret."""
TABLE_VERSION: Final = b"x-lancedb-version"
LEAST_VERSION: Final = b"x-lancedb-min-read-version"
"""Lancedb's names for the version that a read has read, and for the one that it must not be older than."""
DATABASE: Final = b"x-lancedb-database"
DATABASE_PREFIX: Final = b"x-lancedb-database-prefix"
"""Lancedb's names for the namespace that a request is about, and for the prefix below it: `db://DATABASE/PREFIX`."""
TIMEOUT_MILLIS: Final = b"x-request-timeout-ms"
"""Lancedb's name for the time that a client gives a request."""
LAST_EVENT_ID: Final = b"last-event-id"
"""The catalog version of the last event that a client of a stream has seen."""
RANGE: Final = b"range"
IF_RANGE: Final = b"if-range"
IF_NONE_MATCH: Final = b"if-none-match"
SINGLE: Final = (
    b"host",
    b"content-type",
    b"content-encoding",
    b"transfer-encoding",
    b"x-api-key",
    b"authorization",
    CATALOG_VERSION,
    IDEMPOTENCY_KEY,
    FORWARDED_TO,
    PEER_CHALLENGE,
    HANDED_ORIGIN,
    LEAST_VERSION,
    LAST_EVENT_ID,
    DATABASE,
    DATABASE_PREFIX,
    RANGE,
    IF_RANGE,
)
"""Headers of which a request may not have two that differ: a proxy in front might go by another one of them."""
OURS: Final = frozenset({CATALOG_VERSION, FORWARDED_TO, ANSWERED_BY, PEER_CHALLENGE, PEER_RESPONSE, HANDED_ORIGIN})
"""All headers whose names begin with `x-lance-`. Another one asks for something that nothing here does."""
UNSERVED: Final = frozenset(
    {
        b"if-match",
        b"if-unmodified-since",
        b"content-range",
        b"x-http-method",
        b"x-http-method-override",
        b"x-method-override",
    }
)
"""Headers that make a request another one: without a look at them more would be done than was asked for."""
CONDITIONS: Final = frozenset({b"if-none-match", b"if-modified-since"})
"""Likewise where they are not of GET or HEAD, whose answers may be those without a condition."""
