"""The screens: one module for each group, and the table of all.

home     what is here, what happened last, and how the server is
tables   what is in namespaces, and what the catalog tells of a table
rows     rows of a table, searches in it, and values that can be seen or heard
search   tables by parts of their names
keeping  dropped tables, pins, intents and cursors
grants   who may do what
changes  the few changes, each asked about before
log      the log of the catalog, and what one of its versions did
diff     what differs between two catalog versions: tables, and rows of one of them
events   events as they come
refused  rejected batches, and what else was refused
sign_in  who the visitor is

A screen is a function of a `Visit`; its row here gives it a name, a path, and perhaps a place in the navigation.
"""

from __future__ import annotations

from typing import Final

from namespace_console.screens import (
    changes,
    diff,
    events,
    grants,
    home,
    keeping,
    log,
    refused,
    rows,
    search,
    sign_in,
    tables,
)
from namespace_console.visits import Screen

SCREENS: Final = (
    Screen("home", "", home.show, label="Home"),
    Screen("namespaces", "/namespaces", tables.show_root, label="Tables"),
    Screen("namespace", "/namespaces/{namespace}", tables.show_namespace, part_of="namespaces"),
    Screen("table", "/tables/{table}", tables.show_table, part_of="namespaces"),
    Screen("fragments", "/tables/{table}/fragments", tables.show_fragments, part_of="namespaces"),
    Screen("rows", "/tables/{table}/rows", rows.show, part_of="namespaces"),
    Screen("value", "/tables/{table}/values/{column}", rows.show_value),
    Screen("search", "/search", search.show, label="Search"),
    Screen("log", "/log", log.show, label="Log"),
    Screen("batch", "/log/{version}", log.batch, part_of="log"),
    Screen("winner", "/winner/{table}/{version}", log.winner),
    Screen("diff", "/diff", diff.show, label="Diff"),
    Screen("row-diff", "/diff/{table}", diff.show_rows, part_of="diff"),
    Screen("events", "/events", events.show, label="Events"),
    Screen("events-news", "/events/after/{since}", events.news),
    Screen("refused", "/refused", refused.show, label="Rejected"),
    Screen("drops", "/drops", keeping.show_drops, label="Drops"),
    Screen("kept", "/kept", keeping.show_kept, label="Pins and intents"),
    Screen("grants", "/grants", grants.show, label="Grants and keys"),
    Screen("undrop", "/tables/{table}/undrop", changes.ask_undrop, changes.undrop, part_of="drops"),
    Screen("tag", "/tables/{table}/tag", changes.ask_tag, changes.tag, part_of="namespaces"),
    Screen("drop", "/tables/{table}/drop", changes.ask_drop, changes.drop, part_of="namespaces"),
    Screen(
        "maintenance",
        "/tables/{table}/maintenance",
        changes.ask_maintenance,
        changes.maintain,
        part_of="namespaces",
    ),
    Screen("pin", "/pin", changes.ask_pin, changes.pin, part_of="kept"),
    Screen("unpin", "/unpin", changes.ask_unpin, changes.unpin, part_of="kept"),
    Screen("sign-in", "/sign-in", sign_in.show, sign_in.sign_in, open=True),
    Screen("sign-out", "/sign-out", sign_in.show, sign_in.sign_out, open=True),
)
