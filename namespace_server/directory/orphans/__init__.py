"""Lists the files that no version of a table names. Reads only.

search    `find_orphans`: surveys the tables, reads the rows of the catalog, and judges
places    which directories below the root belong to which table
report    what was found, as values, JSON and text
"""

from namespace_server.directory.orphans.report import OrphanReport
from namespace_server.directory.orphans.search import find_orphans

__all__ = ["OrphanReport", "find_orphans"]
