"""The command for values of columns of blobs."""

from __future__ import annotations

import fcntl
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from lance_core.amounts import counted
from namespace_server.cli.command import refusal
from namespace_server.cli.connection import connected
from namespace_server.cli.listing import At, BranchName, TagName, Version
from namespace_server.cli.options import at_point
from namespace_server.cli.output import say
from namespace_server.cli.progress import ProgressLine
from namespace_server.cli.rows import TableName

if TYPE_CHECKING:
    from namespace_client.blobs import BlobFile

_STANDARD_OUTPUT: Final = "-"
_SHOWN: Final = 16
"""Characters of a blob's tag in the name of its part."""


def blob(
    context: typer.Context,
    table: TableName,
    column: Annotated[str, typer.Argument(metavar="COLUMN", help="A column of blobs, or a field in one: info.photo.")],
    output: Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="File to write; - is standard output.")],
    row: Annotated[int | None, typer.Option("--row", min=0, metavar="ID", help="The row with this id.")] = None,
    where: Annotated[
        str | None, typer.Option("--where", metavar="SQL", help="The row that alone matches: 'id = 7'.")
    ] = None,
    branch: BranchName = None,
    tag: TagName = None,
    version: Version = None,
    at: At = None,
) -> None:
    """Write one value of a column of blobs, such as an image or a video, to a file.

    The file appears when it is whole. Until then its bytes are in FILE.TAG.part beside it: after an interruption the
    same command goes on from there, if the value is the same. A null value is an error, and an empty one an empty file.
    """
    if (row is None) == (where is None):
        raise refusal("--row, --where: expected one of them")
    with connected(context) as catalog, ProgressLine() as progress:
        found = at_point(catalog, at).blob(table, column, row, filter=where, branch=branch, tag=tag, version=version)
        if found is None:
            raise refusal(f"{table}: column {column} is null in this row")
        with found:
            if output == _STANDARD_OUTPUT:
                for piece in found.pieces():
                    sys.stdout.buffer.write(piece)
                sys.stdout.buffer.flush()
                return
            begun = _save(found, Path(output), progress)
    rest = f", of which {begun:,} were there" if begun else ""
    say(context, f"{output}: {counted(found.size, 'byte')}{rest}", file=output, bytes=found.size, row=found.row)


def _save(found: BlobFile, target: Path, progress: ProgressLine) -> int:
    """Write a value to a file that appears when it is whole. Returns the bytes that an earlier call has left."""
    name = "new" if found.tag is None else found.tag.strip('"')[:_SHOWN]
    part = target.with_name(f"{target.name}.{name}.part")
    try:
        with part.open("ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise refusal(f"{part}: another command writes it") from None
            if found.tag is None or file.tell() > found.size:  # what is there may be of other bytes
                file.truncate(0)
            begun = done = os.fstat(file.fileno()).st_size
            for piece in found.pieces(begun):
                file.write(piece)
                done += len(piece)
                progress(f"{target}", done, found.size, "bytes")
            file.flush()
            os.fsync(file.fileno())
            part.replace(target)
    except OSError as error:
        raise refusal(f"{target}: not written: {error.strerror or error}") from error
    return begun
