from __future__ import annotations

import pytest

from spark_catalog.errors import InvalidWrite
from spark_catalog.graph import Edge, Graph, Node, parse_properties


@pytest.mark.parametrize(
    "declared",
    [
        Node("id"),
        Edge("person", "city"),
        Edge("person", "person", src="a", dst="b", key=("a", "b", "since")),
    ],
)
def test_a_declaration_is_stored_and_parsed_as_table_properties(declared: Node | Edge) -> None:
    assert parse_properties("t", declared.properties() | {"owner": "x"}) == declared


def test_a_table_without_graph_properties_has_no_declaration() -> None:
    assert parse_properties("t", {"owner": "x"}) is None


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"graph.kind": "node"}, r"t: stored node declaration lacks graph\.key"),
        ({"graph.kind": "edge", "graph.source": "a"}, r"t: stored edge declaration lacks graph\.target"),
        ({"graph.kind": "hyperedge"}, r"t: graph\.kind is 'hyperedge'"),
    ],
)
def test_a_stored_declaration_that_cannot_be_understood_is_refused(properties: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidWrite, match=message):
        parse_properties("t", properties)


def test_an_edge_needs_declared_end_points() -> None:
    with pytest.raises(InvalidWrite, match="edge knows: end point 'person' is not a declared node"):
        Graph(nodes={"city": Node("id")}, edges={"knows": Edge("person", "person")})


def test_a_name_is_a_node_or_an_edge() -> None:
    with pytest.raises(InvalidWrite, match="a: declared as node and as edge"):
        Graph(nodes={"a": Node("id")}, edges={"a": Edge("a", "a")})


def test_end_points_and_key_are_required_columns_once() -> None:
    assert Edge("a", "b", src="x", dst="y", key=("x", "z")).required == ("x", "y", "z")
