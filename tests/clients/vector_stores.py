"""Vector stores of other frameworks, unchanged: each does the same in a directory and in a database of a server.

A program of its own, for an environment in which the frameworks are: `python vector_stores.py URL DIRECTORY`. It prints
what it found equal, and fails at the first difference. None of the stores has a parameter for the address of a server,
so `lancedb.connect` is given it once, as the guide has it.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable
from typing import Any

import lancedb
from langchain_community.vectorstores import LanceDB as CommunityStore
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_lancedb import LanceDB as LangChainStore
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import FilterOperator, MetadataFilter, MetadataFilters, VectorStoreQuery
from llama_index.vector_stores.lancedb import LanceDBVectorStore

CLOUD = {"api_key": "any", "region": "any"}
"""What the stores pass on for a database of a server: the client wants a region, and sends it nowhere."""
TEXTS = ["puppies run", "cats sleep", "it's a puppy's cat", "trains are late", "ships are slow"]
KINDS = ["animal", "animal", "animal", "vehicle", "vehicle"]
LETTERS = "abcdeprstu"


def vector(text: str) -> list[float]:
    """The letters of a text, counted."""
    return [float(text.count(letter)) + 0.125 * place for place, letter in enumerate(LETTERS)]


class Letters(Embeddings):
    """Embeddings for LangChain."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return vector(text)


class LetterModel(BaseEmbedding):
    """Embeddings for LlamaIndex."""

    def _get_text_embedding(self, text: str) -> list[float]:
        return vector(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        return vector(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return vector(query)


def found(documents: list[Any]) -> list[Any]:
    return [(each.page_content, each.metadata) if isinstance(each, Document) else each for each in documents]


def rounded(scored: list[tuple[Document, float]]) -> list[Any]:
    return [(document.page_content, round(score, 3)) for document, score in scored]


def community(uri: str) -> list[Any]:
    """LangChain's store in `langchain-community`."""
    options = CLOUD if uri.startswith("db://") else {}
    store = CommunityStore(uri=uri, embedding=Letters(), table_name="community", mode="append", **options)
    metadata = [{"kind": kind, "number": number} for number, kind in enumerate(KINDS)]
    store.add_texts(TEXTS[:3], metadata[:3], ids=["0", "1", "2"])
    store.add_texts(TEXTS[3:], metadata[3:], ids=["3", "4"])
    results = [
        found(store.similarity_search("a puppy", k=3)),
        rounded(store.similarity_search_with_score("a puppy", k=2)),
        rounded(store.similarity_search_by_vector_with_relevance_scores(vector("slow ships"), k=2)),
        found(store.similarity_search("a puppy", k=3, filter="metadata.kind = 'vehicle'", prefilter=True)),
        found(store.similarity_search("cats", k=2, metrics="cosine")),
        sorted(found(store.max_marginal_relevance_search("cats", k=2, fetch_k=5)), key=repr),
        found(store.as_retriever(search_kwargs={"k": 1}).invoke("trains")),
    ]
    store.create_index(col_name="id")
    store.delete(ids=["0", "3"])
    results.append(sorted(found(store.similarity_search("a puppy", k=10)), key=repr))
    store.delete(filter="metadata.number = 1")
    results.append(sorted(found(store.similarity_search("a puppy", k=10)), key=repr))
    store.delete(delete_all=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that nothing was found
        results.append(found(store.similarity_search("a puppy", k=10)))
    return results


def langchain(uri: str) -> list[Any]:
    """LangChain's store in `langchain-lancedb`."""
    texts, metadata = TEXTS[:4], [{"kind": kind} for kind in KINDS[:4]]
    store = LangChainStore.from_texts(texts, Letters(), metadata, [*"0123"], uri=uri, table_name="langchain")
    store.add_texts(TEXTS[4:], [{"kind": "vehicle"}], ids=["4"])
    again = LangChainStore(Letters(), uri=uri, table_name="langchain")
    results = [rounded(again.similarity_search_with_score("ship", k=5))]
    again.delete(["4", "1"])
    kinds = [each.metadata["kind"] for each in again.similarity_search("ship", k=5)]
    return [*results, rounded(again.similarity_search_with_score("ship", k=5)), kinds]


def llama(uri: str) -> list[Any]:
    """LlamaIndex' store."""
    options = CLOUD if uri.startswith("db://") else {}
    store = LanceDBVectorStore(uri=uri, table_name="llama", mode="create", **options)
    nodes = [
        TextNode(id_=str(number), text=text, metadata={"kind": KINDS[number], "number": number})
        for number, text in enumerate(TEXTS)
    ]
    context = StorageContext.from_defaults(vector_store=store)
    model = LetterModel()
    index = VectorStoreIndex(nodes[:3], storage_context=context, embed_model=model)
    index.insert_nodes(nodes[3:])
    opened = LanceDBVectorStore(uri=uri, table_name="llama", mode="append", **options)
    again = VectorStoreIndex.from_vector_store(opened, embed_model=model)
    near = again.as_retriever(similarity_top_k=3).retrieve("puppies")
    results: list[Any] = [[(each.text, each.metadata, round(each.score or 0.0, 3)) for each in near]]
    for operator, value in ((FilterOperator.EQ, "vehicle"), (FilterOperator.IN, ["vehicle", "none"])):
        chosen = MetadataFilters(filters=[MetadataFilter(key="kind", value=value, operator=operator)])
        query = VectorStoreQuery(query_embedding=vector("puppies"), similarity_top_k=3, filters=chosen)
        answer = index.vector_store.query(query)
        results.append((answer.ids, [round(each, 3) for each in answer.similarities or []]))
    store.create_index(scalar=True, col_name="id")
    # The store puts ids into double quotes, which makes columns of them: both refuse it.
    results += [refusal(lambda: store.delete_nodes(["1", "4"])), refusal(lambda: opened.delete("document"))]
    opened.table.delete("id IN ('1', '4')")
    results.append(sorted(node.node_id for node in near_to(opened, "cats")))
    of_table = LanceDBVectorStore(uri=uri, table=opened.table, **options)
    return [*results, sorted(node.node_id for node in near_to(of_table, "cats"))]


def refusal(call: Callable[[], object]) -> bool:
    """Whether the call is refused since it names a column that there is none of."""
    try:
        call()
    except Exception as error:  # noqa: BLE001  (of another class by a server than in a directory)
        return "No field named" in str(error)
    return False


def near_to(store: LanceDBVectorStore, text: str) -> list[Any]:
    return list(store.query(VectorStoreQuery(query_embedding=vector(text), similarity_top_k=10)).nodes or [])


STORES: tuple[Callable[[str], list[Any]], ...] = (community, langchain, llama)


def main() -> None:
    """Run each store in the directory and on the server, and compare."""
    url, directory = sys.argv[1:]
    lancedb.connect = functools.partial(lancedb.connect, host_override=url)
    for store in STORES:
        local, remote = store(f"{directory}/{store.__name__}"), store("db://stores")
        assert len(local) == len(remote)
        for number, (expected, given) in enumerate(zip(local, remote, strict=True)):
            assert given == expected, f"{store.__name__}, result {number}: expected {expected}, found {given}"
        print(f"{store.__name__}: {len(remote)} results equal")


if __name__ == "__main__":
    main()
