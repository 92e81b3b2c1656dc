"""Root check: whether a directory or bucket can be the root of a catalog, by requests in a directory of its own.

check             one check: the order of the probes, the clean-up, and the report
workspace         the keys that a check writes, and their removal
probes            permissions, reads, listings, conditional deletes, copies
exclusive_writes  writers that race for one key
speed             times of requests, the clocks, and what a batch costs
catalog           the catalog that is there already
report            findings, their advice, and the report
"""

from namespace_server.directory.root_check.check import RootCheck
from namespace_server.directory.root_check.report import RootFinding, RootReport

__all__ = ["RootCheck", "RootFinding", "RootReport"]
