"""What every command has in common: its log, the environment, the exit status, and one line for each error."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any, Final, Self

import typer
from typer.core import TyperCommand, TyperOption


class ExitStatus(IntEnum):
    """How a command ends: the same in each command."""

    meaning: str

    def __new__(cls, number: int, meaning: str) -> Self:
        """A status with what it means, for the reference."""
        member = int.__new__(cls, number)
        member._value_ = number
        member.meaning = meaning
        return member

    DONE = 0, "what was asked for is done, and nothing wrong was found"
    FOUND = 1, "the command ran to its end and reports a problem, or a difference that it was to look for"
    REFUSED = 2, "the call, the settings or the catalog do not allow it; nothing was changed"
    DAMAGED = 3, "a catalog, a table or a file is damaged"
    CONFLICT = 4, "other commits are in the way; nothing was changed, and the same command can succeed later"
    UNAVAILABLE = 5, "no answer, or none for now, or the address is in use; nothing was changed"
    UNKNOWN = 6, "the answer to a change was lost: it may be committed, or may be later"
    INTERRUPTED = 130, "Ctrl-C ended the command; what it had committed stays"


class Command(TyperCommand):
    """A command whose errors are one line on standard error, and a status of `ExitStatus`."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with refusing():
            return super().invoke(ctx)


class VerboseCommand(Command):
    """A command that logs as `-v` says. Those that load the settings of a server take the level from there."""

    def __init__(self, *arguments: Any, **given: Any) -> None:
        super().__init__(*arguments, **given)
        self.params.append(
            TyperOption(
                param_decls=["-v", "--verbose"],
                count=True,
                metavar="",
                expose_value=False,
                callback=lambda _context, _parameter, count: _log(count),
                help="Log to standard error; twice: in full.",
            )
        )

    def invoke(self, ctx: Any) -> Any:
        """Run the command, unless the environment is wrong."""
        with refusing():
            server_environment()
        return super().invoke(ctx)


def refusal(message: str, status: ExitStatus = ExitStatus.REFUSED) -> typer.Exit:
    """The end of a command that is refused, after a line on standard error."""
    typer.echo(f"lance-namespace: {' '.join(message.split())}", err=True)
    return typer.Exit(status)


def server_environment() -> dict[str, Any]:
    """The settings of a server in the environment, not validated. Raises `SettingsError`, a `ValueError`.

    Without any nothing is imported: the settings take two seconds.
    """
    named = {name.upper() for name in os.environ if name.upper().startswith(_PREFIX)}
    if named <= _NAMES_A_CATALOG:
        return {}
    from namespace_server.settings import environment_settings

    return environment_settings()


_PREFIX: Final = "LANCE_NAMESPACE_"
_NAMES_A_CATALOG: Final = frozenset(f"{_PREFIX}{name}" for name in ("ROOT", "URL", "API_KEY", "TOKEN", "PROFILE"))


@contextmanager
def refusing() -> Iterator[None]:
    """End the command with a line on standard error where it cannot do its work."""
    try:
        yield
    except BrokenPipeError:
        raise  # the reader of the output went away: typer ends the command without a word
    except Exception as error:
        status = _status(error)
        if status is None:
            raise
        raise refusal(_text(error), status) from error


def _status(error: Exception) -> ExitStatus | None:
    """The status for an error; None for one that no command is to meet."""
    from lance_namespace.errors import (
        ConcurrentModificationError,
        LanceNamespaceError,
        ServiceUnavailableError,
        ThrottlingError,
    )

    from lance_core.errors import CorruptFile, LanceCoreError, RetryableTransaction, TransactionOutcomeUnknown
    from namespace_client.errors import (
        CatalogUnavailable,
        CatalogUnreachable,
        ClientError,
        CommitConflict,
        CommitUnknown,
    )

    kinds: dict[ExitStatus, tuple[type[Exception], ...]] = {
        ExitStatus.CONFLICT: (CommitConflict, ConcurrentModificationError, RetryableTransaction),
        ExitStatus.UNAVAILABLE: (CatalogUnavailable, CatalogUnreachable, ServiceUnavailableError, ThrottlingError),
        ExitStatus.UNKNOWN: (CommitUnknown, TransactionOutcomeUnknown),
        ExitStatus.DAMAGED: (CorruptFile,),
        ExitStatus.REFUSED: (LanceNamespaceError, LanceCoreError, ClientError, OSError, ValueError),
    }
    return next((status for status, kind in kinds.items() if isinstance(error, kind)), None)


def _text(error: Exception) -> str:
    """The error in words: that of a file with its name, without its number."""
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error) or type(error).__name__


def _log(count: int) -> None:
    if count:
        from namespace_server.logs import configure_logs

        configure_logs("info" if count == 1 else "debug", "text")
