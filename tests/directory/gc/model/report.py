"""The figures of the models, as `docs/design/019-proof-of-collection.md` has them.

`python -m tests.directory.gc.model.report` searches all scenarios, and fails if the note has other figures.
"""

import sys
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from tests.directory.gc.model import (
    adopting,
    bundling,
    cloning,
    collecting,
    dating,
    expiring,
    losing,
    merging,
    misreading,
    rebasing,
    registering,
    returning,
    reusing,
    succeeding,
    undropping,
)
from tests.directory.gc.model.search import Result, explore

NOTE = Path(__file__).parents[4] / "docs/design/019-proof-of-collection.md"


class Scenario(NamedTuple):
    """A model and its first state.

    A large one is searched by `make model` only, with all rules; a long one by `make test-long` too.
    """

    name: str
    model: Any
    initial: Any
    large: bool = False
    long: bool = False

    def search(self, without: str = "") -> Result:
        """Search it completely with all rules, or up to the first problem without one of them."""
        model = self.model.Model(frozenset(self.model.RULES) - {without})
        return explore(self.initial, model.steps, model.problems, first_only=bool(without))


def _catalog(name: str, requests: str, *, large: bool = False, long: bool = False, **bounds: Any) -> Scenario:
    return Scenario(name, collecting, collecting.initial(requests, **bounds), large, long)


SCENARIOS = (
    _catalog("slow writer, two runs, a crash", "", writer=True, collectors=1, runs=2, crashes=1),
    _catalog("restore and pin, two runs, a crash", "restore pin", writer=False, collectors=1, runs=2, crashes=1),
    _catalog("slow writer and pin, two collectors", "pin", long=True, writer=True, collectors=2, runs=1, crashes=0),
    _catalog(
        "slow writer and pin, two collectors, a crash", "pin", large=True, writer=True, collectors=2, runs=1, crashes=1
    ),
    Scenario("undrop, two purges and a horizon flip", undropping, undropping.State()),
    Scenario("branch made again, a crash", reusing, reusing.State()),
    Scenario("job with an intent, two collectors", registering, registering.State(), long=True),
    Scenario("handle of a quarantined version", misreading, misreading.State()),
    Scenario("deletion over a quarantined version", merging, merging.State()),
    Scenario("tag of an expiring version, two runs, a crash", expiring, expiring.State()),
    Scenario(
        "tag by path of an expiring version, two runs, a crash",
        returning,
        returning.State(runs=(returning.Run(), returning.Run())),
    ),
    Scenario("tag by path of an expiring version, three runs, a crash", returning, returning.State(), large=True),
    Scenario("adopted commit by path", adopting, adopting.State()),
    Scenario("clone of an expiring version", cloning, cloning.State()),
    Scenario("rebase over an expiring version", rebasing, rebasing.State()),
    Scenario("lost manifest or short listing, clean-up by a client", losing, losing.State(rebased=True)),
    Scenario("lost manifest and short listing, clean-up by a client", losing, losing.State(faults=2)),
    Scenario("lost manifest of a version without a transaction file", losing, losing.State(recorded=False)),
    Scenario(
        "lost manifest and short listing, a version with a tag", losing, losing.State(tag=True, rebased=True, faults=2)
    ),
    Scenario("end of a lease by the store's dates", dating, dating.State(), long=True),
    Scenario("staged manifests in one object, a crash", bundling, bundling.State()),
    Scenario("freed versions, a lost answer", succeeding, succeeding.State(lost_answers=1)),
    Scenario(
        "freed versions, a lost answer, a stock clean-up", succeeding, succeeding.State(stock=True, lost_answers=1)
    ),
    Scenario(
        "freed versions, a lost answer, a crash", succeeding, succeeding.State(lost_answers=1, crashes=1), large=True
    ),
    Scenario(
        "freed versions, a lost answer, a crash, a stock clean-up",
        succeeding,
        succeeding.State(stock=True, lost_answers=1, crashes=1),
        large=True,
    ),
    Scenario(
        "promotion before the proof, two servers",
        succeeding,
        succeeding.State(clock=True, stock=True, servers=(succeeding.Server(),) * 2),
    ),
    Scenario(
        "promotion before the proof, two servers, a lost answer",
        succeeding,
        succeeding.State(clock=True, stock=True, lost_answers=1, servers=(succeeding.Server(),) * 2),
        large=True,
    ),
    Scenario(
        "promotion before the proof, three servers, a lost answer",
        succeeding,
        succeeding.State(clock=True, stock=True, lost_answers=1),
        large=True,
    ),
)


def states(*, large: bool, long: bool = True) -> Iterator[str]:
    """One line of the first table for each scenario. Raises AssertionError if a rule does not suffice."""
    for scenario in SCENARIOS:
        if (large or not scenario.large) and (long or not scenario.long):
            result = scenario.search()
            assert not result.problems, f"{scenario.name}: {result.problems}"
            yield f"| {scenario.name} | {result.states:,} |"


def removals() -> Iterator[str]:
    """One line of the second table for each rule: what happens without it, by the shortest trace of all scenarios."""
    for model in dict.fromkeys(scenario.model for scenario in SCENARIOS):
        for rule in model.RULES:
            results = [s.search(rule) for s in SCENARIOS if s.model is model and not s.large]
            traces = [(problem, len(trace)) for result in results for problem, trace in result.problems.items()]
            assert traces, f"the rule {rule!r} prevents nothing"
            problem, steps = min(traces, key=itemgetter(1))
            yield f"| {rule} | {problem} | {steps} |"


def main() -> int:
    """Print all figures; 1 if the note does not have one of them."""
    note = NOTE.read_text().splitlines()
    missing = False
    for line in (*states(large=True), *removals()):
        print(line, "" if line in note else "<- not in the note", flush=True)
        missing |= line not in note
    return int(missing)


if __name__ == "__main__":
    sys.exit(main())
