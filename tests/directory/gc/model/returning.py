"""A client tags an expired version by path while runs remove its manifest, and put it back (G17).

The client finds the version, and writes the tag at any later time. Each run lists the table, reads copies of manifests,
plans, removes the manifest, looks at references, and then removes the file that the manifest names.
"""

from collections.abc import Iterator
from typing import NamedTuple

RULES = ("copied", "copies after the list", "there beside its copy", "copies before the file", "copy stays")


class Run(NamedTuple):
    """One run: what it does `next`, what it plans to remove, and what it has found.

    `version` and `file` are in its plan. It `has` the bytes of the manifest, has written a `copy`, and has found the
    manifest `there` when it removed it. A tag is `named` by its last look at references.
    """

    next: str = ""
    version: bool = False
    file: bool = True
    has: bool = False
    copy: bool = False
    there: bool = False
    named: bool = False


class State(NamedTuple):
    """The manifest, the file that it names, the tag (`found`, then `written`), and the runs."""

    manifest: bool = True
    file: bool = True
    tag: str = ""
    runs: tuple[Run, ...] = (Run(), Run(), Run())
    crashes: int = 1


class Model:
    """The steps and invariants with some of the rules."""

    def __init__(self, rules: frozenset[str]) -> None:
        self.rules = rules
        looks = ("list", "read copies") if "copies after the list" in rules else ("read copies", "list")
        self._after = {"": looks[0], looks[0]: looks[1], looks[1]: "sweep"}

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        """Every step that some process can do."""
        if not state.tag and state.manifest:
            yield "client: finds the version", state._replace(tag="found")
        if state.tag == "found":
            yield "client: writes the tag", state._replace(tag="written")
        for index, run in enumerate(state.runs):
            if run.next == "done":
                continue
            now = run._replace(next=run.next or self._after[""])
            after, changed = self._run(now, state)
            yield f"run {index}: {now.next}", changed._replace(runs=_with(state, index, after))
            if state.crashes:
                dead = _with(state, index, run._replace(next="done"))
                yield f"run {index}: dies", state._replace(runs=dead, crashes=state.crashes - 1)

    def _run(self, run: Run, state: State) -> tuple[Run, State]:
        is_named, copies = state.tag == "written", any(each.copy for each in state.runs)
        match run.next:
            case "list":
                protects = state.manifest and is_named
                planned = run._replace(version=state.manifest and not is_named, file=run.file and not protects)
                return planned._replace(next=self._after[run.next]), state
            case "read copies":
                return run._replace(next=self._after[run.next], file=run.file and not copies), state
            case "sweep" if run.version:
                return run._replace(next="look at the manifest" if is_named else "read the manifest"), state
            case "sweep":
                return run._replace(next="remove the file" if run.file else "done"), state
            case "read the manifest":
                return run._replace(next="write a copy", has=state.manifest), state
            case "write a copy":
                return run._replace(next="remove the manifest", copy=run.has and "copied" in self.rules), state
            case "remove the manifest":
                there = run.has and (state.manifest or "there beside its copy" not in self.rules)
                return run._replace(next="look at references", there=there), state._replace(manifest=False)
            case "look at references":
                return run._replace(next="put back" if is_named and run.there else "remove the copy"), state
            case "put back":
                after = "look at the manifest" if "copy stays" in self.rules else "remove the copy"
                return run._replace(next=after), state._replace(manifest=True)
            case "remove the copy":
                return run._replace(next="look at the manifest", copy=False), state
            case "look at the manifest":
                return run._replace(next="done" if state.manifest else "look at copies"), state
            case "look at copies":
                needed = not run.file or (copies and "copies before the file" in self.rules)
                return run._replace(next="done" if needed else "remove the file"), state
            case _:
                return run._replace(next="done"), state._replace(file=False)

    def problems(self, state: State) -> Iterator[str]:
        """The violated invariants of a state."""
        if state.manifest and not state.file:
            yield "a version that can be listed names a removed file"


def _with(state: State, index: int, run: Run) -> tuple[Run, ...]:
    return (*state.runs[:index], run, *state.runs[index + 1 :])
