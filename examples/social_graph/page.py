"""Plots of a run as SVG files, and a page of HTML that shows them with its numbers."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from social_graph.generator import GRAPH
from social_graph.pipelines import Commit, Journal

WRITERS = {"daily update": "#1f4e79", "views": "#d1793b", "stream": "#4a9c5d"}
_KINDS = {
    "at once": "#9bb7d4",
    "rebased over another writer": "#3b6ea5",
    "tried again after a conflict": "#b5413b",
}
_STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "svg.hashsalt": "social-graph",
    "figure.constrained_layout.use": True,
}


@dataclass(frozen=True)
class Run:
    """What a page shows.

    Attributes:
        title: What was run.
        journal: Commits of all writers.
        versions: Catalog versions from the first load to the end.
        rows: Rows of every table in each of these versions.
        degrees: Number of persons by number of friends, and of messages by number of likes.
        facts: Lines of numbers, each with what it is.
        queries: SQL statements with their answers.
    """

    title: str
    journal: Journal
    versions: Sequence[int]
    rows: Mapping[str, Sequence[int]]
    degrees: Mapping[str, Mapping[int, int]]
    facts: Mapping[str, str]
    queries: Mapping[str, Sequence[Sequence[object]]]


def write_page(run: Run, out: Path) -> Path:
    """Write the plots and the page into a directory. Returns the page."""
    out.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(_STYLE):
        _rows(run, out / "rows.svg")
        _latency(run, out / "latency.svg")
        _conflicts(run, out / "conflicts.svg")
        _degrees(run, out / "degrees.svg")
    page = out / "index.html"
    page.write_text(_html(run))
    return page


def _rows(run: Run, file: Path) -> None:
    """One line for each table, relative to the first load; commits of the daily update as vertical lines."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), sharex=True)
    for ax, kind, tables in zip(axes, ("nodes", "edges"), (GRAPH.nodes, GRAPH.edges), strict=True):
        for commit in run.journal.of("daily update"):
            ax.axvline(commit.version, color=WRITERS["daily update"], alpha=0.15, linewidth=3)
        for table in tables:
            rows = run.rows[table]
            shares = [100 * count / rows[0] for count in rows]
            ax.step(run.versions, shares, where="post", label=f"{table}\n{rows[-1]:,} rows", linewidth=1.5)
        ax.set_title(f"Rows of {kind}, in percent of the first load", loc="left")
        ax.set_xlabel("catalog version (shaded: daily updates)")
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    _save(figure, file)


def _latency(run: Run, file: Path) -> None:
    """Seconds of each commit over the time of the run: whole, and the batch alone."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), sharex=True)
    for writer, color in WRITERS.items():
        commits = run.journal.of(writer)
        times = [commit.at for commit in commits]
        axes[0].scatter(times, [commit.seconds for commit in commits], s=18, color=color, label=writer)
        axes[1].scatter(times, [commit.publish_ms for commit in commits], s=18, color=color, label=writer)
    axes[0].set_title("From the first row to the answer (s)", loc="left")
    axes[1].set_title("The batch alone: sent and answered (ms)", loc="left")
    for ax in axes:
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        _label_plainly(ax.yaxis)
        ax.set_xlabel("seconds of the run")
    axes[1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    _save(figure, file)


def _conflicts(run: Run, file: Path) -> None:
    """How commits went, as shares of the commits of a writer: at once, rebased, after conflicts."""
    figure, ax = plt.subplots(figsize=(8, 2.4))
    totals = {writer: max(1, len(run.journal.of(writer))) for writer in WRITERS}
    names = [f"{writer} ({len(run.journal.of(writer))})" for writer in WRITERS]
    left = [0.0] * len(names)
    for kind, color in _KINDS.items():
        counts = [sum(_kind(commit) == kind for commit in run.journal.of(writer)) for writer in WRITERS]
        widths = [100 * count / total for count, total in zip(counts, totals.values(), strict=True)]
        bars = ax.barh(names, widths, left=left, color=color, label=kind)
        ax.bar_label(bars, labels=[str(count or "") for count in counts], label_type="center", color="white")
        left = [start + width for start, width in zip(left, widths, strict=True)]
    ax.set_title("Commits of each writer, in percent", loc="left")
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=3, frameon=False)
    _save(figure, file)


def _kind(commit: Commit) -> str:
    at_once, rebased, again = _KINDS
    return again if commit.conflicts else rebased if commit.rebased else at_once


def _degrees(run: Run, file: Path) -> None:
    """Degrees on two logarithmic axes, where a power law is a straight line."""
    figure, axes = plt.subplots(1, len(run.degrees), figsize=(10, 3.2))
    for ax, (name, counts) in zip(axes, run.degrees.items(), strict=True):
        _scatter_log(ax, name, counts)
    _save(figure, file)


def _label_plainly(*axes: Axis) -> None:
    """Plain numbers at the major ticks of logarithmic axes, and none between them."""
    for axis in axes:
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        axis.set_minor_formatter(NullFormatter())


def _scatter_log(ax: Axes, name: str, counts: Mapping[int, int]) -> None:
    ax.scatter(list(counts), list(counts.values()), s=8, color="#1f4e79", alpha=0.6)
    ax.set_xscale("log")
    ax.set_yscale("log")
    _label_plainly(ax.xaxis, ax.yaxis)
    ax.set_title(name, loc="left")


def _save(figure: plt.Figure, file: Path) -> None:
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)


def _html(run: Run) -> str:
    facts = _table(list(run.facts.items()))
    queries = "".join(f"<pre>{html.escape(text)}</pre>{_table(rows)}" for text, rows in run.queries.items())
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{html.escape(run.title)}</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #222 }}
img {{ width: 100%; margin: 1rem 0 }} pre {{ background: #f4f4f4; padding: .6rem }}
td {{ padding: .1rem 1.5rem .1rem 0; font-variant-numeric: tabular-nums }}
</style>
<h1>{html.escape(run.title)}</h1>
{facts}
<h2>Rows by catalog version</h2><img src="rows.svg" alt="Rows of every table in every catalog version">
<h2>Latency</h2><img src="latency.svg" alt="Seconds and milliseconds of each commit">
<h2>Conflicts</h2><img src="conflicts.svg" alt="Commits at once, rebased, and tried again">
<h2>Two catalog versions in one query</h2>{queries}
<h2>Degrees</h2><img src="degrees.svg" alt="Number of persons by friends, of messages by likes">
</html>
"""


def _table(rows: Sequence[Sequence[object]]) -> str:
    cells = ("".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) for row in rows)
    return "<table>" + "".join(f"<tr>{row}</tr>" for row in cells) + "</table>"


def summary(commits: Sequence[Commit]) -> str:
    """Median and largest milliseconds of the batches, and the conflicts of some commits."""
    if not commits:
        return "none"
    times = sorted(commit.publish_ms for commit in commits)
    batches = f"batches of {times[len(times) // 2]:.0f} ms (median) to {times[-1]:.0f} ms"
    conflicts, rebased = sum(commit.conflicts for commit in commits), sum(bool(commit.rebased) for commit in commits)
    return f"{len(commits)} commits in {batches}; {rebased} rebased; {conflicts} conflicts"
