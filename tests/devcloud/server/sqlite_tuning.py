"""Makes oslo.db's SQLite hold under threads.

As it comes, oslo.db opens every transaction with a deferred BEGIN.  A writer that has read first
must then upgrade its lock, which SQLite refuses at once, busy timeout or not, if another writer has
committed meanwhile: «database is locked», and nearly every concurrent write is answered 500.
"""

import collections
import threading

from oslo_db import exception
from oslo_db.sqlalchemy import enginefacade, engines, exc_filters
from sqlalchemy import Integer, Table, event, exc, pool
from sqlalchemy.engine import Engine

from tests.devcloud.server.shadow import Shadow

IMMEDIATE = "BEGIN IMMEDIATE"
QUEUE_SECONDS = 30

# One lock a database: SQLite lets a waiting writer poll, ever more slowly; here writers queue.
_turns = collections.defaultdict(threading.Lock)


def tune():
    """Call before any engine is made."""
    _write_from_the_start()
    _queue_writers()
    _translate_locked()
    _pool_connections()


def use_no_id_twice():
    """Call before tables are made: SQLite gives the id of the last row again when that row is gone.

    Heat deletes rows whose ids other threads still hold («ResourcePropertiesData with id 8 not found»).
    Keystone leaves it to the database to delete what hangs on a credential, which SQLite does not: the next
    one of that id would find it («Duplicate entry»).
    """

    @event.listens_for(Table, "before_create")
    def count_on(table, connection, **options):
        key = list(table.primary_key.columns)
        if len(key) == 1 and type(key[0].type) is Integer:
            table.dialect_options["sqlite"]["autoincrement"] = True


def _write_from_the_start():
    """Take a writer's lock when its transaction begins, where the busy timeout does apply."""
    factory = enginefacade._TransactionFactory
    create_session, create_connection = factory._create_session, factory._create_connection

    def writing_session(self, mode, bind=None):
        session = create_session(self, mode, bind)
        if mode is enginefacade._WRITER and bind is None:
            session.bind = self._writer_engine.execution_options(devcloud_begin=IMMEDIATE)
        return session

    def writing_connection(self, mode):
        connection = create_connection(self, mode)
        if mode is enginefacade._WRITER:
            connection = connection.execution_options(devcloud_begin=IMMEDIATE)
        return connection

    factory._create_session, factory._create_connection = writing_session, writing_connection


def tune_octavia():
    """The same for Octavia, where requests and the reports of drivers make sessions of their own.

    A request also writes the row of its project's quotas beside its own transaction, and would wait for itself
    (octavia/db/repositories.py, 19.0.0, check_quota_met): here it does so within.
    """
    from octavia.api.drivers.driver_agent import driver_updater
    from octavia.common import context
    from octavia.db import api, repositories

    def writing_session():
        session = api.get_session()
        session.bind = api.get_engine().execution_options(devcloud_begin=IMMEDIATE)
        return session

    context.db_api = driver_updater.db_apis = Shadow(api, get_session=writing_session)
    check_quota_met = repositories.Repositories.check_quota_met

    def check_in_one_transaction(self, session, kind, project_id, count=1):
        if not self.quotas.get(session, project_id=project_id):
            self.quotas.update(session, project_id, quota={})
        return check_quota_met(self, session, kind, project_id, count)

    repositories.QuotasRepository.ensure_project_exists = lambda self, project_id: None
    repositories.Repositories.check_quota_met = check_in_one_transaction


def _queue_writers():
    """Let a writer wait for its turn at BEGIN, and hand it on at commit or rollback."""

    @event.listens_for(Engine, "before_cursor_execute", retval=True)
    def begin(conn, cursor, statement, parameters, context, executemany):
        if statement == "BEGIN":
            statement = conn.get_execution_options().get("devcloud_begin", statement)
            turn = _turns[str(conn.engine.url)]
            if statement == IMMEDIATE and turn.acquire(timeout=QUEUE_SECONDS):
                conn.info["devcloud_turn"] = turn
        return statement, parameters

    @event.listens_for(Engine, "commit")
    @event.listens_for(Engine, "rollback")
    def end(conn):
        # called just before the driver's own commit or rollback; the busy timeout covers the gap
        if turn := conn.info.pop("devcloud_turn", None):
            turn.release()


def _translate_locked():
    """What is still refused becomes DBDeadlock, which the projects' own retries know."""

    @exc_filters.filters("sqlite", exc.OperationalError, r".*database is locked.*")
    def locked(error, match, engine_name, is_disconnect):
        raise exception.DBDeadlock(error)


def _pool_connections():
    """Keep connections: oslo.db forces NullPool on SQLite files.

    Without a pool each connection reads the whole schema again, and the last one to close
    checkpoints the write-ahead log.
    """
    create_engine = engines.sqlalchemy.create_engine

    def pooled(url, **options):
        if options.get("poolclass") is pool.NullPool:
            options.update(poolclass=pool.QueuePool, pool_size=10, max_overflow=100)
        return create_engine(url, **options)

    engines.sqlalchemy = Shadow(engines.sqlalchemy, create_engine=pooled)
    engines._thread_yield = lambda connection, record: None  # is for eventlet; native threads need no invitation
