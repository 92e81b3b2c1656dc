"""The port of commit handlers, and the one that uses what the store has."""

from __future__ import annotations

from abc import ABC, abstractmethod

from lance_core.storage.port import ObjectStore


class CommitHandler(ABC):
    """Gives stores their put-if-absent.

    All writers of a table must use the same means: two of them exclude each other only through what both ask. Reading
    needs no handler, except of versions that an external manifest store has and the object store has not yet.
    """

    @abstractmethod
    def over(self, store: ObjectStore) -> ObjectStore:
        """`store` with the verbs `put_if_absent`, `publish`, `rename_if_absent` and `replace` by the handler's means.

        Closing the result closes `store`. Sends nothing.
        """


def handle(store: ObjectStore, handler: CommitHandler | None) -> ObjectStore:
    """`store` with names claimed by the handler's means; without one, by the store's own."""
    return store if handler is None else handler.over(store)


class ConditionalPut(CommitHandler):
    """The store's own: a conditional PUT on S3, Azure and Google; a link of a complete file on a local disk."""

    def over(self, store: ObjectStore) -> ObjectStore:
        """`store` itself."""
        return store
