"""Storage options and credentials in answers."""

from __future__ import annotations

import time
from typing import Any

from namespace_tck.registry import CheckList, Promise
from namespace_tck.rows import rows
from namespace_tck.trial import Trial

checks = CheckList()

SECRET_WORDS = ("secret", "token", "password", "account_key", "access_key", "sas", "service_account")
NO_SECRETS = "the server hands out no credentials"


def _options(t: Trial, answer: dict[str, Any]) -> dict[str, str]:
    found = answer.get("storage_options")
    t.need(bool(found), "the server answers no storage options")
    assert found is not None
    options: dict[str, str] = found
    return options


def _temporary(t: Trial, answer: dict[str, Any]) -> dict[str, str]:
    found = _options(t, answer)
    t.need("expires_at_millis" in found, "the storage options do not expire")
    return found


def _secrets(options: dict[str, str]) -> list[str]:
    """The names of options that are credentials."""
    return sorted(name for name in options if any(word in name.lower() for word in SECRET_WORDS))


@checks("describe_table", Promise.CREDENTIALS, "DescribeTableRequest.vend_credentials")
def describes_with_credentials_on_request(t: Trial) -> None:
    """A request for credentials succeeds, whether or not the storage needs any."""
    t.call("describe_table", t.table(), {"vend_credentials": True}).ok()


@checks("describe_table", Promise.CREDENTIALS, "DescribeTableRequest.vend_credentials")
def describes_without_credentials_on_request(t: Trial) -> None:
    """A request that wants no credentials succeeds."""
    t.call("describe_table", t.table(), {"vend_credentials": False}).ok()


@checks("declare_table", Promise.CREDENTIALS, "DeclareTableRequest.vend_credentials")
def declares_with_credentials_on_request(t: Trial) -> None:
    """A declaration that asks for credentials succeeds, whether or not the storage needs any."""
    t.call("declare_table", t.id("t"), {"vend_credentials": True}).ok()


@checks("declare_table", Promise.CREDENTIALS, "DeclareTableResponse.storage_options")
def declares_with_the_options_of_describe(t: Trial) -> None:
    """Where storage options are answered, a declaration answers the same keys as describe_table."""
    declared = _options(t, t.call("declare_table", t.id("t"), {"vend_credentials": True}).ok())
    described = _options(t, t.call("describe_table", t.id("t"), {"vend_credentials": True}).ok())
    t.equal(sorted(declared), sorted(described), "keys of the storage options")


@checks("describe_table", Promise.CREDENTIALS, "DescribeTableResponse.storage_options")
def tells_when_credentials_end(t: Trial) -> None:
    """Where expires_at_millis is answered, it is a number of milliseconds in the future."""
    found = _temporary(t, t.call("describe_table", t.table(), {"vend_credentials": True}).ok())
    end = found["expires_at_millis"]
    t.expect(end.isdecimal(), f"expires_at_millis: expected milliseconds since 1970, found {end[:40]!r}")
    t.expect(int(end) > time.time() * 1000, f"expires_at_millis: expected a time in the future, found {end[:40]}")


@checks("describe_table", Promise.CREDENTIALS, "DescribeTableRequest.vend_credentials")
def answers_no_credentials_that_are_not_wanted(t: Trial) -> None:
    """Where credentials are handed out, a request with vend_credentials false gets none."""
    made = t.table()
    t.need(bool(_secrets(_options(t, t.call("describe_table", made, {"vend_credentials": True}).ok()))), NO_SECRETS)
    answer = t.call("describe_table", made, {"vend_credentials": False}).ok()
    t.equal(_secrets(answer.get("storage_options") or {}), [], "names of credentials")


@checks("declare_table", Promise.CREDENTIALS, "DeclareTableRequest.vend_credentials")
def declares_without_credentials_that_are_not_wanted(t: Trial) -> None:
    """Where credentials are handed out, a declaration with vend_credentials false gets none."""
    given = t.call("declare_table", t.id("a"), {"vend_credentials": True}).ok()
    t.need(bool(_secrets(_options(t, given))), NO_SECRETS)
    answer = t.call("declare_table", t.id("b"), {"vend_credentials": False}).ok()
    t.equal(_secrets(answer.get("storage_options") or {}), [], "names of credentials")


@checks("describe_table", Promise.CREDENTIALS, "DescribeTableResponse.storage_options")
def temporary_credentials_open_no_other_table(t: Trial) -> None:
    """With temporary credentials of one table, a stock client cannot read another one."""
    mine, other = (t.call("describe_table", t.table(name), {"vend_credentials": True}).ok() for name in ("t", "t2"))
    options = _temporary(t, mine)
    t.need(bool(_secrets(options)), NO_SECRETS)
    t.stock.open_location(mine["location"], options)
    try:
        count = t.stock.open_location(other["location"], options).count_rows()
    except (OSError, ValueError):
        return
    raise t.failure(f"expected no access to another table, found {count} rows of it")


@checks("describe_table", Promise.CREDENTIALS, "DescribeTableResponse.storage_options")
def vended_options_open_the_table(t: Trial) -> None:
    """With the storage options that are answered, a stock client opens the location and reads the rows."""
    made = t.table()
    found = t.call("describe_table", made, {"vend_credentials": True}).ok()
    dataset = t.stock.open_location(found["location"], found.get("storage_options"))
    t.equal(sorted(dataset.to_table()["id"].to_pylist()), [1, 2, 3], "ids")


@checks("create_table", Promise.CREDENTIALS, "CreateTableResponse.storage_options")
def a_creation_reveals_no_more_than_describe(t: Trial) -> None:
    """The storage options of a creation hold no key that describe_table without credentials leaves out."""
    made = t.id("t")
    created = t.call("create_table", made, rows([1])).ok().get("storage_options") or {}
    described = t.call("describe_table", made).ok().get("storage_options") or {}
    t.equal(sorted(set(created) - set(described)), [], "keys that only the creation answers")
