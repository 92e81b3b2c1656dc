"""Full-text and vector search over HTTP, by a client that has no Lance: the last chapter of `nyc_flights.py`.

The server builds the indices and answers the queries; rows travel as Arrow.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from typing import Any

import httpx
import pyarrow as pa

ARROW = {"content-type": "application/vnd.apache.arrow.stream"}


class TableOverHttp:
    """One table of a catalog server."""

    def __init__(self, url: str, table_id: Sequence[str]) -> None:
        self._url = f"{url}/v1/table/{'$'.join(table_id)}"

    def create(self, rows: pa.Table) -> Any:
        """Create the table with its rows."""
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)
        return self._post("create", content=sink.getvalue(), headers=ARROW).json()

    def create_index(self, column: str, kind: str, **options: Any) -> Any:
        """Build an index, and wait for it."""
        return self._post("create_index", json={"column": column, "index_type": kind, **options}).json()

    def query(self, **request: Any) -> pa.Table:
        """The rows of a query."""
        return pa.ipc.open_file(self._post("query", json=request).content).read_all()

    def _post(self, operation: str, **request: Any) -> httpx.Response:
        answer = httpx.post(f"{self._url}/{operation}", timeout=120, **request)
        if answer.is_error:
            raise RuntimeError(f"{operation}: {answer.json()['error']}")
        return answer


def named(url: str, table_id: Sequence[str], word: str) -> list[str]:
    """The codes of the airports with a word in their name, by a full-text index that is built first."""
    airports = TableOverHttp(url, table_id)
    airports.create_index("name", "FTS")
    search = {"string_query": {"query": word, "columns": ["name"]}}
    found = airports.query(full_text_query=search, columns={"column_names": ["faa"]}, k=10_000)
    return sorted(found["faa"].to_pylist())


def nearest(url: str, table_id: Sequence[str], airports: pa.Table, to: str, count: int) -> list[str]:
    """The codes of the airports nearest to one, by a new table of their places on the globe and a vector index."""
    places = TableOverHttp(url, table_id)
    rows = places_of(airports)
    places.create(rows)
    places.create_index("place", "IVF_FLAT", distance_type="l2")
    [place] = [row["place"] for row in rows.to_pylist() if row["faa"] == to]
    found = places.query(
        vector={"single_vector": place},
        vector_column="place",
        k=count,
        nprobes=10_000,
        columns={"column_names": ["faa", "_distance"]},
    )
    return [str(code) for code in found["faa"].to_pylist()]


def places_of(airports: pa.Table) -> pa.Table:
    """The code of each airport and its place: a unit vector from the centre of the earth."""
    vectors = []
    for row in airports.select(["lat", "lon"]).to_pylist():
        lat, lon = math.radians(row["lat"]), math.radians(row["lon"])
        vectors.append([math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat)])
    return pa.table({"faa": airports["faa"], "place": pa.array(vectors, pa.list_(pa.float32(), 3))})


def named_in(airports: pa.Table, word: str) -> list[str]:
    """As `named`, computed here."""
    rows = airports.select(["faa", "name"]).to_pylist()
    return sorted(row["faa"] for row in rows if word in re.findall(r"\w+", (row["name"] or "").lower()))


def nearest_in(airports: pa.Table, to: str, count: int) -> list[str]:
    """As `nearest`, computed here."""
    rows = places_of(airports).to_pylist()
    [place] = [row["place"] for row in rows if row["faa"] == to]
    return [row["faa"] for row in sorted(rows, key=lambda row: math.dist(row["place"], place))[:count]]
