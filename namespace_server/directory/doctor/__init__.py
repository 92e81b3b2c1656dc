"""Doctor: checks the invariants of a catalog from storage alone, and makes the repairs that are certain.

run                looks at the catalog, then at one table after another; findings are looked at twice
catalog            the versions of `__manifest`, its rows, pins, tombstones, and the contents of `_staging/`
tables             the versions of one table against its rows
retained_versions  versions that only pins and dropped tables keep
files              the files that a version names
repairs            what the server itself would do: promote, put back, adopt; remove rows of lost versions
findings           findings, their severity, and the report
"""

from namespace_server.directory.doctor.findings import ExaminationReport, Finding, Severity
from namespace_server.directory.doctor.run import Examination

__all__ = ["Examination", "ExaminationReport", "Finding", "Severity"]
