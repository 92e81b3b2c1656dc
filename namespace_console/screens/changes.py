"""The few changes that can be made here. Each is asked about on a page of its own, and made by a form of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from namespace_client.error_codes import ErrorCode
from namespace_client.errors import CommitRejected, InvalidCall
from namespace_client.maintenance import MaintenanceResult
from namespace_client.names import Name, absolute
from namespace_client.table_overview import table_overview
from namespace_client.wire import DroppedTable
from namespace_console.screens.tables import named
from namespace_console.visits import Onward, Shown, Visit, missing, whole_number
from table_data.batch_operations import DELIMITER, TableId

_MOST_DAYS: Final = 30
_RUN_SECONDS: Final = 10
_SAID: Final = {
    "done": "Done.",
    "nothing_to_do": "Nothing of this table is worth work.",
    "planned": "This is worth work.",
    "busy": "The table is left to its other writers.",
    "given_up": "This was given up.",
    "failed": "This has failed.",
}
"""What the outcomes of maintenance mean."""


def ask_undrop(visit: Visit) -> Shown:
    """What comes back, and under which name."""
    dropped = _dropped(visit, visit.text("tombstone"), named(visit))
    return visit.page("undrop.html", f"Bring back {Name(dropped.id)}", dropped=dropped)


def undrop(visit: Visit) -> Shown:
    """Bring a dropped table back."""
    table_id = named(visit)
    new_name = visit.form.get("new_name", "").strip()
    new_id = absolute(new_name) if new_name else table_id
    visit.catalog.undrop(table_id, new_id, tombstone=_given(visit, "tombstone"), message=_message(visit))
    return Onward(visit.links("table", DELIMITER.join(new_id), at=None))


def ask_tag(visit: Visit) -> Shown:
    """The name of a new tag, and the version that it is for."""
    table_id = named(visit)
    found = table_overview(visit.catalog.access, table_id, visit.version, branch=visit.text("branch"))
    version = visit.number("version") or found.version
    return visit.page("tag.html", f"Tag a version of {Name(table_id)}", table=found, version=version)


def tag(visit: Visit) -> Shown:
    """Make a tag."""
    version, branch = _number(visit, "version"), visit.form.get("branch", "").strip() or None
    visit.catalog.create_tag(
        named(visit), _given(visit, "tag"), version=version, branch=branch, message=_message(visit)
    )
    return Onward(visit.links("table", visit.path["table"], at=None))


def ask_pin(visit: Visit) -> Shown:
    """The name of a new pin, and the catalog version that it is for."""
    return visit.page("pin.html", "Pin a catalog version", pinned=visit.number("version") or visit.version)


def pin(visit: Visit) -> Shown:
    """Pin a catalog version."""
    days = whole_number("days", visit.form.get("days", ""), _MOST_DAYS)
    reason = visit.form.get("reason", "").strip() or None
    lasting = timedelta(days=days) if days else None
    visit.catalog.pin(_given(visit, "name"), _number(visit, "version"), lasting=lasting, reason=reason)
    return Onward(visit.links("kept", at=None))


def ask_unpin(visit: Visit) -> Shown:
    """The pin, and what ends with it."""
    found = next((each for each in visit.catalog.pins() if each.name == visit.text("name")), None)
    if found is None:
        raise missing(f"pin {visit.text('name')}")
    return visit.page("unpin.html", f"Remove the pin {found.name}", pin=found)


def unpin(visit: Visit) -> Shown:
    """Remove a pin."""
    visit.catalog.unpin(_given(visit, "name"))
    return Onward(visit.links("kept", at=None))


def ask_drop(visit: Visit) -> Shown:
    """A table, and what its drop reaches: twelve requests, and one for each namespace above it."""
    table_id = named(visit)
    found = table_overview(visit.catalog.access, table_id, visit.version)
    intents = [job for job in visit.catalog.intents() if any(each.id == table_id for each in job.tables)]
    pins = visit.catalog.pins()
    grants = visit.catalog.grants(table=table_id)
    return visit.page(
        "drop.html",
        f"Drop {Name(table_id)}",
        table=found,
        intents=intents,
        pins=pins,
        grants=[each for each in grants.grants if each.on.path == table_id],
    )


def drop(visit: Visit) -> Shown:
    """Drop a table, if it is the one that was asked about, at the same version: that is looked at before."""
    table_id = named(visit)
    state = visit.catalog.access.table(table_id)
    if state is None:
        raise missing(f"table {Name(table_id)}")
    asked = whole_number("version", visit.form.get("version", ""))
    if (state.version, state.uri) != (asked, visit.form.get("location", "")):
        raise CommitRejected(
            f"table {Name(table_id)}: expected version {asked or 'none'} of the table that was asked about, "
            f"found {state.version or 'none'}",
            code=ErrorCode.CONCURRENT_MODIFICATION,
            status=409,
        )
    visit.catalog.drop(table_id, message=_message(visit))
    return Onward(visit.links("drops", at=None))


def ask_maintenance(visit: Visit) -> Shown:
    """What of a table is worth work, if the visitor may have it done: three requests."""
    table_id = named(visit)
    if visit.catalog.can("maintain", table=table_id).allowed:  # else each look would be an attempt that is refused
        return _maintenance(visit, table_id, visit.catalog.maintain(table_id, dry_run=True))
    visit.catalog.access.read("describe_table", {"id": list(table_id)})  # one that is hidden is not there
    return _maintenance(visit, table_id, None)


def maintain(visit: Visit) -> Shown:
    """Maintain a table for a while, and show what became of it."""
    table_id = named(visit)
    forced = bool(visit.form.get("forced"))
    done = visit.catalog.maintain(table_id, forced=forced, seconds=_RUN_SECONDS, message=_message(visit))
    return _maintenance(visit, table_id, done)


def _maintenance(visit: Visit, table_id: TableId, found: MaintenanceResult | None) -> Shown:
    said = None if found is None else _SAID[found.status]
    title = f"Maintenance of {Name(table_id)}"
    return visit.newest_page("maintenance.html", title, name=table_id, found=found, said=said)


def _dropped(visit: Visit, tombstone: str | None, table_id: TableId) -> DroppedTable:
    for dropped in visit.catalog.dropped_tables():
        if dropped.tombstone == tombstone and dropped.id == table_id:
            return dropped
    raise missing(f"a drop of {Name(table_id)}")


def _given(visit: Visit, field: str) -> str:
    value = visit.form.get(field, "").strip()
    if not value:
        raise InvalidCall(f"{field}: expected a text, found none")
    return value


def _number(visit: Visit, field: str) -> int:
    value = whole_number(field, _given(visit, field))
    assert value is not None
    return value


def _message(visit: Visit) -> str | None:
    return visit.form.get("message", "").strip() or None
