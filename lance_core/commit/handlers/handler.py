"""The interface of commit handlers, and `ConditionalPut`, which uses the put-if-absent of the store."""

from __future__ import annotations

from abc import ABC, abstractmethod

from lance_core.storage.port import ObjectStore


class CommitHandler(ABC):
    """Makes the exclusive writes of a store.

    All writers of a table must use the same handler; writers with different handlers do not exclude each other.
    Reading needs a handler only if the table has an external manifest store.
    """

    @abstractmethod
    def over(self, store: ObjectStore) -> ObjectStore:
        """`store`, with `put_if_absent`, `publish`, `rename_if_absent` and `replace` made by this handler.

        Closing the result closes `store`. Makes no request.
        """


def handle(store: ObjectStore, handler: CommitHandler | None) -> ObjectStore:
    """`store`, with names claimed by `handler`; without a handler, `store` itself."""
    return store if handler is None else handler.over(store)


class ConditionalPut(CommitHandler):
    """The put-if-absent of the store: a conditional PUT on S3, Azure and Google, a hard link on a local disk."""

    def over(self, store: ObjectStore) -> ObjectStore:
        """`store` itself."""
        return store
