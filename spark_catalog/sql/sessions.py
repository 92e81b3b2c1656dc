"""State of Spark sessions: the open transaction of several statements, and the statements that run."""

from __future__ import annotations

import threading
import uuid
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from namespace_client.errors import CommitUnknown
from namespace_client.http import CatalogServer
from namespace_client.results import TransactionResult
from namespace_client.staged_transaction import Isolation
from namespace_client.wire import CatalogHead
from spark_catalog.sql.errors import InvalidStatement, Unsupported
from spark_catalog.sql.transactions import Savepoint, SqlTransaction, StagedFiles
from spark_catalog.tasks.staging import discard_files
from table_data.batch_operations import TableId

_FINISHED = 64


@dataclass(slots=True)
class Statement:
    """A statement that changes tables.

    Attributes:
        id: Name of the statement.
        transaction: What its changes are added to.
        number: Number of the statement in its transaction, from 1.
        savepoint: State before the statement, if it is part of a transaction of several statements.
        read: Tables that the statement has read.
    """

    id: str
    transaction: SqlTransaction
    number: int
    savepoint: Savepoint | None
    read: set[TableId] = field(default_factory=set)


@dataclass(slots=True)
class SqlSession:
    """One Spark session. `lock` is held by every call that reads or changes its transaction."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    open: SqlTransaction | None = None
    is_unknown: bool = False
    """Whether the outcome of the commit of `open` is unknown."""
    statements: dict[str, Statement] = field(default_factory=dict)
    finished: deque[str] = field(default_factory=lambda: deque(maxlen=_FINISHED))
    """The last statements that ended."""
    count: int = 0
    """Statements of the open transaction so far."""
    read: set[TableId] = field(default_factory=set)
    """Tables read since the last writing query without a transaction of Spark, which may be what that query reads."""

    def require_known(self) -> None:
        """Raise `InvalidStatement` if the outcome of the open transaction is unknown."""
        if self.is_unknown:
            raise InvalidStatement(
                "the outcome of the commit of this transaction is unknown: CALL system.commit() asks again"
            )


class Sessions:
    """All sessions of a process. Thread-safe.

    Args:
        server: The catalog.
        isolation: Isolation of statements outside of transactions.
        storage_options: Options of Lance for the object store of the tables.
    """

    def __init__(self, server: CatalogServer, isolation: Isolation, storage_options: Mapping[str, str]) -> None:
        self._server = server
        self._isolation = isolation
        self._options = dict(storage_options)
        self._sessions: dict[str, SqlSession] = {}
        self._lock = threading.Lock()

    def get(self, session: str) -> SqlSession:
        """The session of this name, made on first use."""
        with self._lock:
            return self._sessions.setdefault(session, SqlSession())

    # -- statements

    def begin_statement(self, session: SqlSession, *, at: int | None = None) -> Statement:
        """Begin a statement, in the open transaction if there is one, else on catalog version `at` or the newest."""
        with session.lock:
            if session.open is not None:
                session.require_known()
                session.count += 1
                statement = Statement(uuid.uuid4().hex, session.open, session.count, session.open.savepoint())
            else:
                transaction = self._new_transaction(self._isolation, None, at)
                statement = Statement(uuid.uuid4().hex, transaction, 1, None)
            session.statements[statement.id] = statement
            return statement

    def statement(self, session: SqlSession, name: str) -> Statement:
        """A statement that runs. Raises `InvalidStatement` if it is over."""
        found = session.statements.get(name)
        if found is None:
            raise InvalidStatement("this statement is over: its transaction was ended, or its Python process was")
        return found

    def commit_statement(self, session: SqlSession, statement: Statement) -> TransactionResult | None:
        """Commit the batch of a statement; None if it is part of a transaction of several statements.

        After a rejection the files of the statement are deleted. After `CommitUnknown` all of them are kept.
        """
        with session.lock:
            self._finish(session, statement)
            if statement.savepoint is not None:
                return None
            try:
                return statement.transaction.commit()
            except CommitUnknown:
                raise
            except Exception:
                discard(statement.transaction.files)
                raise

    def begin_alone(self, session: SqlSession, *, at: int | None = None) -> Statement:
        """Begin a statement that Spark made no transaction for. It is taken to have read all that was read before it.

        Spark 4.1 makes none at all, and later versions make none for `FROM … INSERT … INSERT …`.
        """
        with session.lock:
            statement = self.begin_statement(session, at=at)
            statement.read |= session.read
            session.read.clear()
            return statement

    def abort_statement(self, session: SqlSession, statement: Statement) -> None:
        """Take back the staged changes of a statement, and delete its files."""
        with session.lock:
            if statement.id not in session.statements:
                return
            self._finish(session, statement)
            if statement.savepoint is not None:
                discard(statement.transaction.roll_back(statement.savepoint))
            else:
                statement.transaction.abandon()
                discard(statement.transaction.files)

    @contextmanager
    def writing(self, session: SqlSession, statement: str | None, *, at: int | None = None) -> Iterator[Statement]:
        """The statement of a call. A call without one is a statement of its own, which the block commits."""
        if statement is not None:
            yield self.statement(session, statement)
            return
        own = self.begin_alone(session, at=at)
        try:
            yield own
        except BaseException:
            self.abort_statement(session, own)
            raise
        self.commit_statement(session, own)

    # -- transactions of several statements

    def begin(self, session: SqlSession, isolation: Isolation, message: str | None) -> SqlTransaction:
        """Begin a transaction of several statements. Raises `InvalidStatement` if one is open."""
        with session.lock:
            if session.open is not None:
                raise InvalidStatement("a transaction is open in this session: commit it or roll it back first")
            session.open = self._new_transaction(isolation, message, None)
            session.is_unknown = False
            session.count = 0
            return session.open

    def commit(self, session: SqlSession) -> TransactionResult:
        """Commit the open transaction. After `CommitUnknown` it stays open, and a second call sends it again.

        Raises:
            InvalidStatement: No transaction is open.
            CommitRejected: The catalog refused the batch. The transaction is over and its files are deleted.
            CommitUnknown: The outcome is unknown. No file is deleted.
        """
        with session.lock:
            transaction = self._require_open(session)
            try:
                result = transaction.resend() if session.is_unknown else transaction.commit()
            except CommitUnknown:
                session.is_unknown = True
                raise
            except Exception:
                if not session.is_unknown:
                    discard(transaction.files)
                    self._end(session)
                raise
            self._end(session)
            return result

    def rollback(self, session: SqlSession) -> None:
        """End the open transaction without a commit. Files of an unknown outcome are kept."""
        with session.lock:
            transaction = self._require_open(session)
            if not session.is_unknown:
                transaction.abandon()
                discard(transaction.files)
            self._end(session)

    def refuse_inside(self, session: SqlSession, what: str) -> None:
        """Raise `Unsupported` if a transaction of several statements is open."""
        if session.open is not None:
            raise Unsupported(f"{what}: cannot be part of a transaction; commit it or roll it back first")

    def _require_open(self, session: SqlSession) -> SqlTransaction:
        if session.open is None:
            raise InvalidStatement("no transaction is open in this session: CALL system.begin() begins one")
        return session.open

    def _finish(self, session: SqlSession, statement: Statement) -> None:
        session.statements.pop(statement.id, None)
        session.finished.append(statement.id)

    def _end(self, session: SqlSession) -> None:
        session.open = None
        session.is_unknown = False
        session.statements.clear()

    def _new_transaction(self, isolation: Isolation, message: str | None, at: int | None) -> SqlTransaction:
        head = self._server.state()
        if at is not None:
            head = CatalogHead(head.root, at)
        return SqlTransaction(
            self._server,
            head,
            isolation=isolation,
            message=message,
            storage_options=self._options,
            fixed=at is not None,
        )


def discard(files: Iterable[StagedFiles]) -> None:
    """Delete files that no version refers to. Those that cannot be deleted are left to garbage collection."""
    for staged in files:
        discard_files(staged.uri, staged.paths, staged.storage_options, never_published=staged.is_new)
