"""Logging on standard error, as lines of text or of JSON."""

from __future__ import annotations

import logging
import time

import orjson

from lance_core.hidden_credentials import without_credentials

_TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class TextFormatter(logging.Formatter):
    """A line of text, and the traceback if there is one; without the credentials of addresses in either."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as text."""
        return without_credentials(super().format(record))


class JsonFormatter(logging.Formatter):
    """One JSON object a record: time (UTC), level, logger, message, and the traceback if there is one.

    Credentials of addresses are left out.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line."""
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": without_credentials(record.getMessage()),
        }
        if record.exc_info:
            line["traceback"] = without_credentials(self.formatException(record.exc_info))
        return orjson.dumps(line).decode()


def configure_logs(level: str, form: str) -> None:
    """Send everything from `level` up to standard error, as `form`: "text" or "json"."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter(_TEXT))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for library in ("alembic", "httpx"):  # they log each of their parts, and each request, at INFO
        logging.getLogger(library).setLevel(logging.WARNING)
    for library in ("botocore", "aiobotocore", "azure", "google"):  # at DEBUG they log what a token service answers
        logging.getLogger(library).setLevel(max(logging.INFO, logging.getLogger().level))
