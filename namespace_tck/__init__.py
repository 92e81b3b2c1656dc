"""A conformance kit for servers of the published Lance namespace REST specification, release 0.13.0, and of lancedb.

It speaks plain HTTP to any server, makes one namespace with a random name there, and removes it at the end.

operations   the published operations: method, path, request, success
exchanges    one request and its answer, and what is expected of an answer
client       sends requests, refuses to call what the server does not serve
rows         Arrow tables in requests and answers
registry     what a check is, and lists of checks
session      one server under test: its capabilities, the namespace of the kit, its removal
trial        what one check works with: its own namespace, tables and clients
staging      a namespace that keeps the commits of pylance instead of sending them
storage      stock clients that open the location of a table themselves
checks       the checks, one module for each kind of object
runner       runs checks, gives results
report       results as text and as JUnit XML, and the exit status
lancedb      the same for the dialect of lancedb's remote clients: a table of requests and answers
command      the command line
"""

from __future__ import annotations

from namespace_tck.checks import ALL
from namespace_tck.registry import Check, Promise
from namespace_tck.runner import CheckOutcome, Result, run_check, run_checks
from namespace_tck.session import Session, SessionError

__all__ = ["ALL", "Check", "CheckOutcome", "Promise", "Result", "Session", "SessionError", "run_check", "run_checks"]
