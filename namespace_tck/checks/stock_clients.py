"""What stock clients do by themselves, with the server as their namespace and the storage in reach."""

from __future__ import annotations

from functools import partial

from namespace_tck.registry import CheckList, Promise
from namespace_tck.rows import rows
from namespace_tck.trial import Trial

checks = CheckList()


@checks("describe_table", Promise.STORAGE, "DescribeTableResponse.location")
def a_stock_client_opens_the_location(t: Trial) -> None:
    """The location is one that a stock client opens, and it finds the rows there."""
    made = t.table(versions=2)
    location = t.call("describe_table", made).ok()["location"]
    found = t.stock.open_location(location, None).to_table()
    t.equal(sorted(found["id"].to_pylist()), [1, 2, 3, 101], "ids")


@checks("describe_table", Promise.STORAGE, "DescribeTable")
def a_stock_client_opens_the_table(t: Trial) -> None:
    """A stock client opens the table through the server and finds the rows of its newest version."""
    made = t.table(versions=3)
    dataset = t.stock.open(made)
    t.equal((dataset.version, dataset.count_rows()), (t.head(made), 5), "version and rows")


@checks("describe_table_version", Promise.STORAGE, "DescribeTableVersion")
def a_stock_client_opens_an_older_version(t: Trial) -> None:
    """A stock client opens an older version through the server."""
    made = t.table(versions=3)
    t.equal(t.stock.open(made, version=1).count_rows(), 3, "rows of version 1")


@checks("declare_table", Promise.STORAGE, "DeclareTable")
def a_stock_client_creates_a_table(t: Trial) -> None:
    """A table that a stock client creates through the server is described, listed and has one version."""
    made = t.id("t")
    t.stock.create(made, rows([1, 2]))
    t.equal(t.names("list_tables", t.space, "tables"), ["t"], "tables")
    t.equal(t.versions(made), [1], "versions")
    t.equal(t.ids(made), [1, 2], "ids")


@checks("create_table_version", Promise.STORAGE, "CreateTableVersion")
def a_stock_client_appends(t: Trial) -> None:
    """Rows that a stock client appends through the server are in the next version."""
    made = t.table()
    t.stock.append(made, rows([4]))
    t.equal(t.versions(made), [1, 2], "versions")
    t.equal(t.ids(made), [1, 2, 3, 4], "ids")


@checks("create_table_version", Promise.STORAGE, "CreateTableVersion")
def stock_clients_append_at_once(t: Trial) -> None:
    """Rows that four stock clients append at once are all there."""
    made = t.table(data=rows([0]))
    t.stock.open(made)
    t.together([partial(t.stock.append, made, rows([number])) for number in range(1, 5)])
    t.equal(t.ids(made), [0, 1, 2, 3, 4], "ids")


@checks("create_table_version", Promise.STORAGE, "CreateTableVersion")
def a_stock_client_deletes_rows(t: Trial) -> None:
    """Rows that a stock client deletes through the server are gone for every reader."""
    made = t.table()
    t.stock.open(made).delete("id = 2")
    t.equal(t.ids(made), [1, 3], "ids")
    t.equal(t.versions(made), [1, 2], "versions")


@checks("create_table_version", Promise.STORAGE, "CreateTableVersion")
def a_stale_stock_client_appends(t: Trial) -> None:
    """A stock client that opened the table before another's commit appends after it, and both are there."""
    made = t.table()
    stale = t.stock.open(made)
    t.stock.append(made, rows([4]))
    stale.insert(rows([5]))
    t.equal(t.ids(made), [1, 2, 3, 4, 5], "ids")


@checks("insert_into_table", Promise.STORAGE, "InsertIntoTable")
def the_server_and_a_stock_client_take_turns(t: Trial) -> None:
    """Rows that the server and a stock client append in turn are all there, one version each."""
    made = t.table(data=rows([0]))
    t.call("insert_into_table", made, rows([1])).ok()
    t.stock.append(made, rows([2]))
    t.call("insert_into_table", made, rows([3])).ok()
    t.stock.append(made, rows([4]))
    t.equal(t.ids(made), [0, 1, 2, 3, 4], "ids")
    t.equal(t.versions(made), [1, 2, 3, 4, 5], "versions")


@checks("deregister_table", Promise.STORAGE, "DeregisterTableRequest")
def the_content_of_a_deregistered_table_remains(t: Trial) -> None:
    """After a deregistration a stock client still opens the location and finds the rows."""
    made = t.table()
    location = t.call("describe_table", made).ok()["location"]
    t.call("deregister_table", made, {}).ok()
    found = t.stock.open_location(location, None).to_table()
    t.equal(sorted(found["id"].to_pylist()), [1, 2, 3], "ids")
