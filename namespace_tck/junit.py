"""Results as JUnit XML."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

from namespace_tck.runner import CheckOutcome, Result

_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold."""


def write_junit(path: Path, results: Sequence[Result], url: str) -> None:
    """Write one test case for each result; the class is the operation. Raises `OSError`."""
    counts = Counter(result.outcome for result in results)
    suite = ET.Element(
        "testsuite",
        name="lance-namespace-tck",
        hostname=_clean(url),
        tests=str(len(results)),
        failures=str(counts[CheckOutcome.FAILED]),
        skipped=str(counts[CheckOutcome.SKIPPED]),
        errors="0",
        time=f"{sum(result.seconds for result in results):.3f}",
    )
    for result in results:
        case = ET.SubElement(
            suite,
            "testcase",
            classname=result.check.operation,
            name=result.check.name,
            time=f"{result.seconds:.3f}",
        )
        if result.outcome is CheckOutcome.SKIPPED:
            ET.SubElement(case, "skipped", message=_clean(result.reason))
        elif result.outcome is CheckOutcome.FAILED:
            failure = ET.SubElement(case, "failure", message=_clean(result.reason))
            failure.text = _clean(f"{result.check.statement}\n{result.check.source}\n{result.exchange}")
    ET.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
