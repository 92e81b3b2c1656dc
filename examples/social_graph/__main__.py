"""Load, some days with three writers, queries, checks, plots. The exit status is 1 if a number differs."""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark program uses

from social_graph.checks import Disagreement, agree, check_days, check_rows, check_views, streamed_likes
from social_graph.generator import TABLES, SocialGraph
from social_graph.history import rows_by_version
from social_graph.page import WRITERS, Run, summary, write_page
from social_graph.pipelines import NAMESPACE, Commit, Journal, LikeStream, ViewCounter, load, update
from spark_catalog import CatalogServer, configure, read_graph, session, start

_SMALL = 300_000
"""Edges up to which Java's start takes longer than its work."""
_LATE_LIKES = 20_000
_VIEWED_MESSAGES = 2_000


def main() -> int:
    """Run with the arguments of the command line. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="social_graph", description="A social graph over ten days.")
    parser.add_argument("--edges", type=int, default=200_000, help="number of edges, about")
    parser.add_argument("--days", type=int, default=10, help="number of days with updates")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("build/social-graph"), help="directory of the plots")
    parser.add_argument("--memory", default="2g", help="memory of the driver")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="social-graph-") as name, ExitStack() as stack:
        home = Path(name)
        url = stack.enter_context(running_server(home / "catalog", home / "server.log"))
        is_small = given.edges <= _SMALL
        builder = configure(
            SparkSession.builder.master("local[*]"),
            shuffle_partitions=2 if is_small else 4,
            driver_memory=given.memory,
            quick_start=is_small,
        )
        builder = builder.config("spark.sql.warehouse.dir", str(home / "warehouse"))
        with error_output_to(home / "spark.log"):
            spark = start(session(builder, uri=url), log_level="ERROR")
        stack.callback(spark.stop)
        try:
            graph = SocialGraph(spark, home / "generated", given.edges, given.days, given.seed)
            run = run_days(spark, url, graph, home)
        except Disagreement as error:
            say(f"FAILED: {error}")
            return 1
    page = write_page(run, given.out)
    say(f"every number agrees with the generator; the page is {page}")
    return 0


def run_days(spark: SparkSession, url: str, graph: SocialGraph, home: Path) -> Run:
    """Load, update day by day while two other writers commit, query and check."""
    with CatalogServer(url) as server:
        server.ensure_namespace(NAMESPACE)
        graph.generate()
        journal = Journal()
        say(f"{graph.persons:,} persons, {graph.messages:,} messages, about {graph.edges:,} edges")
        first = load(journal, spark, url, graph)
        days = [first.version]
        tell("day 0", first)
        likes = graph.late_likes(_LATE_LIKES).cache()
        old = graph.history("message").where("appears = 0").orderBy("id").limit(_VIEWED_MESSAGES)
        counter = ViewCounter(journal, url, [row.id for row in old.select("id").collect()])
        stream = LikeStream(journal, spark, url, likes, home / "checkpoint")
        with counter.running(), stream.running():
            for day in range(1, graph.days + 1):
                commit = update(journal, spark, url, graph, day)
                days.append(commit.version)
                tell(f"day {day}", commit)
        last = server.state().version
        versions = list(range(days[0], last + 1))
        rows = rows_by_version(server, versions)
        say("comparing with the generator")
        check_days(graph, {table: [rows[table][version - days[0]] for version in days] for table in TABLES})
        total = check_rows(spark, server, graph, streamed_likes(likes, stream.epochs))
        viewed = [message for number in range(counter.counted) for message in counter.viewed(number)]
        views = check_views(spark, server, viewed)
        facts = {
            "rows compared with the generator": f"{total:,} in {len(TABLES)} tables",
            "views counted": f"{views:,}",
            "first load": f"{first.seconds:.1f} s",
            **{writer: summary(journal.of(writer)) for writer in WRITERS},
        }
        queries = run_queries(spark, graph, days[0], last)
        title = f"A social graph of {sum(rows[table][-1] for table in TABLES):,} rows over {graph.days} days"
        return Run(title, journal, versions, rows, degrees(spark, server), facts, queries)


def run_queries(
    spark: SparkSession, graph: SocialGraph, first: int, last: int
) -> Mapping[str, Sequence[Sequence[object]]]:
    """SQL over two catalog versions. The first answer is compared with the generator."""
    moved = f"""SELECT count(*) AS moved
FROM lance.social.is_located_in VERSION AS OF 'catalog:{first}' AS before
JOIN lance.social.is_located_in VERSION AS OF 'catalog:{last}' AS now ON before.src = now.src
WHERE before.dst <> now.dst"""
    lost = f"""SELECT before.src AS person, before.friends, coalesce(now.friends, 0) AS friends_now
FROM (SELECT src, count(*) AS friends
      FROM lance.social.knows VERSION AS OF 'catalog:{first}' GROUP BY src) AS before
LEFT JOIN (SELECT src, count(*) AS friends
           FROM lance.social.knows VERSION AS OF 'catalog:{last}' GROUP BY src) AS now ON before.src = now.src
ORDER BY before.friends - coalesce(now.friends, 0) DESC, person LIMIT 5"""
    answers = {text: [tuple(row) for row in spark.sql(text).collect()] for text in (moved, lost)}
    before = graph.rows("is_located_in", 0).select("src", F.col("dst").alias("old"))
    expected = graph.rows("is_located_in", graph.days).join(before, "src").where("old <> dst").count()
    agree("persons that moved", answers[moved], [(expected,)])
    return answers


def degrees(spark: SparkSession, server: CatalogServer) -> Mapping[str, Mapping[int, int]]:
    """How many nodes have how many edges."""
    now = read_graph(spark, server, NAMESPACE, columns={"knows": ["src"], "likes": ["src"], "has_member": ["src"]})
    names = {"knows": "Persons by number of friends", "likes": "Persons by number of likes"} | {
        "has_member": "Forums by number of members"
    }
    found: dict[str, Mapping[int, int]] = {}
    for table, name in names.items():
        by_degree = now.tables[table].groupBy("src").count().groupBy("count").agg(F.count("*").alias("nodes"))
        found[name] = {row["count"]: row.nodes for row in by_degree.collect()}
    return found


@contextmanager
def running_server(root: Path, log: Path) -> Iterator[str]:
    """A catalog server in a process of its own. Gives its URL."""
    command = [sys.executable, "-m", "namespace_server", "serve", "--root", str(root), "--port", "0"]
    with log.open("w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True)
    try:
        assert process.stdout is not None
        found = next((match[0] for line in process.stdout if (match := re.search(r"http://\S+", line))), None)
        if found is None:
            raise SystemExit(f"the catalog server did not start: {log.read_text()[-2000:]}")
        yield found
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


@contextmanager
def error_output_to(file: Path) -> Iterator[None]:
    """Java inherits the error output: what it says is for a file."""
    kept = os.dup(2)
    with file.open("w") as log:
        os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def tell(what: str, commit: Commit) -> None:
    """Print a commit of the daily update."""
    lost = f", after {commit.conflicts} conflicts" if commit.conflicts else ""
    say(f"{what}: catalog version {commit.version}, {commit.seconds:.1f} s, {commit.rebased} tables rebased{lost}")


def say(text: str) -> None:
    """Print a line with the seconds since the start."""
    print(f"{time.perf_counter() - _BEGAN:6.1f} s  {text}", flush=True)


_BEGAN = time.perf_counter()

if __name__ == "__main__":
    sys.exit(main())
