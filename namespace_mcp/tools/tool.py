"""What a tool is: its name, its arguments, its answer, and the function that makes one from the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from namespace_client import Catalog


class Arguments(BaseModel):
    """The arguments of a tool. One that it does not have is refused: if it were ignored, what it asks for were lost."""

    model_config = ConfigDict(extra="forbid")


class ToolAnswer(BaseModel):
    """The answer of a tool."""

    catalog_version: int = Field(description="The catalog version that this answer is of.")

    def text(self) -> str:
        """The answer for people, and for models that read texts."""
        raise NotImplementedError


A = TypeVar("A", bound=Arguments)
R = TypeVar("R", bound=ToolAnswer)


@dataclass(frozen=True, slots=True)
class Tool(Generic[A, R]):
    """A tool.

    Attributes:
        name: Its name.
        title: Its name for people.
        description: What it does, and when to use it.
        arguments: The type of its arguments.
        answer: The type of its answer.
        run: Makes the answer. Blocking; raises exceptions of `namespace_client`.
        changes: Whether it changes the catalog. Other tools only read.
        destructive: Whether a change may remove what was there.
    """

    name: str
    title: str
    description: str
    arguments: type[A]
    answer: type[R]
    run: Callable[[Catalog, A], R]
    changes: bool = False
    destructive: bool = False


AnyTool = Tool[Any, Any]
