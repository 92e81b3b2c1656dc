"""The frame of every command: its log, the environment, the exit status, and one line for each error."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import IntEnum
from functools import wraps
from typing import Annotated, Any, Final, Self

import typer

from lance_core.hidden_credentials import without_credentials
from namespace_server.interruption import INTERRUPTED

Run = Callable[..., None]
"""The function of a command."""


class ExitStatus(IntEnum):
    """How a command ends: the same in each command."""

    meaning: str

    def __new__(cls, number: int, meaning: str) -> Self:
        """A status with its meaning, for the reference."""
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
    INTERRUPTED = INTERRUPTED, "Ctrl-C ended the command; what it had committed stays"


def command(function: Run) -> Run:
    """A command whose errors are one line on standard error, and a status of `ExitStatus`."""

    @wraps(function)
    def run(*arguments: Any, **given: Any) -> None:
        with refusing():
            function(*arguments, **given)

    run.__doc__ = _flowing(function)
    return run


def verbose_command(function: Run) -> Run:
    """A command that logs as `-v` says, and refuses an environment that is wrong.

    Commands that load the settings of a server take the level of the log from there.
    """

    @wraps(function)
    def run(*arguments: Any, verbose: int = 0, **given: Any) -> None:
        with refusing():
            if verbose:
                _log(verbose)
            server_environment()
            function(*arguments, **given)

    run.__doc__ = _flowing(function)
    return with_options(run, function, {"verbose": (_Verbose, 0)})


def _flowing(function: Run) -> str:
    """The text of a command, each paragraph in one line: typer would keep the line ends of the source."""
    paragraphs = (inspect.getdoc(function) or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


_Verbose = Annotated[
    int, typer.Option("-v", "--verbose", count=True, metavar="", help="Log to standard error; twice: in full.")
]


def with_options(run: Run, function: Run, added: Mapping[str, tuple[Any, Any]]) -> Run:
    """Give a command further options, each by its name, with its annotation and default.

    Typer learns the options of a command from the signature of its function: that is its public interface.
    """
    own = inspect.signature(function, eval_str=True)
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in added.items()
    ]
    parameters = [*own.parameters.values(), *options]
    run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def refusal(message: str, status: ExitStatus = ExitStatus.REFUSED) -> typer.Exit:
    """The end of a command that is refused, after a line on standard error."""
    typer.echo(f"lance-namespace: {without_credentials(' '.join(message.split()))}", err=True)
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
_NAMES_A_CATALOG: Final = frozenset(f"{_PREFIX}{name}" for name in ("ROOT", "URL", "API_KEY", "TOKEN", "PROFILE", "CA"))


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

    from lance_core.errors import CorruptFile, LanceCoreError, OutcomeUnknown, RetryableTransaction
    from namespace_client.errors import (
        CatalogUnavailable,
        CatalogUnreachable,
        ClientError,
        CommitConflict,
    )

    kinds: dict[ExitStatus, tuple[type[Exception], ...]] = {
        ExitStatus.UNKNOWN: (OutcomeUnknown,),
        ExitStatus.CONFLICT: (CommitConflict, ConcurrentModificationError, RetryableTransaction),
        ExitStatus.UNAVAILABLE: (CatalogUnavailable, CatalogUnreachable, ServiceUnavailableError, ThrottlingError),
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
    from namespace_server.observability.logs import configure_logs

    configure_logs("info" if count == 1 else "debug", "text")
