"""Declaration of a property graph: one table for each kind of node, one for each kind of edge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from spark_catalog.errors import InvalidWrite

_PREFIX = "graph."


@dataclass(frozen=True, slots=True)
class Node:
    """A node table.

    Attributes:
        key: Column that identifies a node: unique and never null.
    """

    key: str

    @property
    def required(self) -> tuple[str, ...]:
        """The columns that must not be null."""
        return (self.key,)

    @property
    def unique(self) -> tuple[str, ...]:
        """The columns that together identify a row."""
        return (self.key,)

    def properties(self) -> dict[str, str]:
        """The table properties that store this declaration."""
        return {"graph.kind": "node", "graph.key": self.key}


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge table.

    Attributes:
        source: Node table that the edges start at.
        target: Node table that the edges end at.
        src: Column with the key of the source node, never null.
        dst: Column with the key of the target node, never null.
        key: Columns that together identify an edge. Parallel edges are allowed if there are none.
    """

    source: str
    target: str
    src: str = "src"
    dst: str = "dst"
    key: tuple[str, ...] = ()

    @property
    def required(self) -> tuple[str, ...]:
        """The columns that must not be null."""
        return tuple(dict.fromkeys((self.src, self.dst, *self.key)))

    @property
    def unique(self) -> tuple[str, ...]:
        """The columns that together identify a row; empty if none do."""
        return self.key

    def properties(self) -> dict[str, str]:
        """The table properties that store this declaration."""
        stored = {
            "graph.kind": "edge",
            "graph.source": self.source,
            "graph.target": self.target,
            "graph.src": self.src,
            "graph.dst": self.dst,
        }
        return stored | ({"graph.key": ",".join(self.key)} if self.key else {})


@dataclass(frozen=True, slots=True)
class Graph:
    """Node and edge tables of one namespace.

    Example:
        ```python
        graph = Graph(
            nodes={"person": Node(key="id")},
            edges={"knows": Edge("person", "person", src="a", dst="b")},
        )
        ```

    Attributes:
        nodes: Node tables by name.
        edges: Edge tables by name.

    Raises:
        InvalidWrite: A name is a node and an edge, or an end point is not a declared node.
    """

    nodes: Mapping[str, Node] = field(default_factory=dict)
    edges: Mapping[str, Edge] = field(default_factory=dict)

    def __post_init__(self) -> None:
        both = sorted(set(self.nodes) & set(self.edges))
        if both:
            raise InvalidWrite(f"{', '.join(both)}: declared as node and as edge")
        for name, edge in self.edges.items():
            for end in (edge.source, edge.target):
                if end not in self.nodes:
                    raise InvalidWrite(f"edge {name}: end point {end!r} is not a declared node: {sorted(self.nodes)}")
            if any("," in column for column in edge.key):
                raise InvalidWrite(f"edge {name}: key columns {edge.key} must not contain a comma")

    def table(self, name: str) -> Node | Edge | None:
        """The declaration of a table, None if the graph has no such table."""
        return self.nodes.get(name) or self.edges.get(name)

    def edges_at(self, node: str) -> dict[str, Edge]:
        """The edge tables with an end point in this node table."""
        return {name: edge for name, edge in self.edges.items() if node in (edge.source, edge.target)}


def parse_properties(name: str, properties: Mapping[str, str]) -> Node | Edge | None:
    """The declaration stored in the properties of a table, None if the table is not part of a graph.

    Raises `InvalidWrite` if the stored declaration is incomplete or of an unknown kind.
    """
    stored = {key.removeprefix(_PREFIX): value for key, value in properties.items() if key.startswith(_PREFIX)}
    kind = stored.get("kind")
    if kind is None:
        return None
    try:
        if kind == "node":
            return Node(stored["key"])
        if kind == "edge":
            key = tuple(stored["key"].split(",")) if stored.get("key") else ()
            return Edge(stored["source"], stored["target"], stored["src"], stored["dst"], key)
    except KeyError as missing:
        raise InvalidWrite(f"{name}: stored {kind} declaration lacks graph.{missing.args[0]}") from None
    raise InvalidWrite(f"{name}: graph.kind is {kind!r}, expected 'node' or 'edge'")
