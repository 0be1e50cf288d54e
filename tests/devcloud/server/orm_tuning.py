"""Spares SQLAlchemy work for rows that there are none of, and queries that it cannot keep.

Before it fetches the first row of a query, the ORM prepares to build an instance with all its relationships, which for
some of Neutron's models takes more than half of a request (SQLAlchemy 2.1.9, orm/loading.py, instances and
_instance_processor). Most lists that tests read are empty. For relationships that Keystone and Neutron load by
"subquery" it also writes a new query then; "selectin" loads the same by a query that it writes once
(orm/strategies.py, _SubqueryLoader and _SelectInLoader). Of the dozen tables that a port or a router is loaded from by
such queries most have no row, which SQLite tells in a fraction of the time.
"""

import sqlite3

from sqlalchemy import Table
from sqlalchemy.engine import cursor
from sqlalchemy.orm import RelationshipProperty, context, strategies


def tune():
    """Call before the first query."""
    _process_no_rows()
    _load_by_selectin()
    _load_nothing_of_empty_tables()


def _process_no_rows():
    row_processor = context._MapperEntity.row_processor

    def row_processor_if_rows(self, query, result):
        if not query.yield_per and _is_empty(result):
            return None, self._label_name, self._extra_entities  # what would be called for each row
        return row_processor(self, query, result)

    context._MapperEntity.row_processor = row_processor_if_rows


def _is_empty(result):
    """Whether a query has found nothing; what it has found is fetched."""
    strategy = result.cursor_strategy
    if type(strategy) is cursor.CursorFetchStrategy:
        try:
            rows = result.cursor.fetchall()
        except sqlite3.Error as error:
            strategy.handle_exception(result, result.cursor, error)
        strategy = cursor.FullyBufferedCursorFetchStrategy(result.cursor, initial_buffer=rows)
        result.cursor_strategy = strategy
    return type(strategy) is cursor.FullyBufferedCursorFetchStrategy and not strategy._rowbuffer


def _load_by_selectin():
    """Properties look their strategy up when their mapper is configured, at the first query."""
    of_relationships = RelationshipProperty._all_strategies[RelationshipProperty]
    of_relationships[("lazy", "subquery"),] = strategies._SelectInLoader


def _load_nothing_of_empty_tables():
    load = strategies._SelectInLoader._load_for_path

    def load_unless_empty(self, context, path, states, load_only, *more):
        if (load_only and self.key not in load_only) or not _finds_nothing(self, context.session):
            return load(self, context, path, states, load_only, *more)
        for state, overwrite in states:  # as _load_via_parent does without rows
            if overwrite or self.key not in state.dict:
                state.get_impl(self.key).set_committed_value(state, state.dict, () if self.uselist else None)

    strategies._SelectInLoader._load_for_path = load_unless_empty


def _finds_nothing(loader, session):
    """Whether the table of a relationship has no row, read within the transaction of the session.

    What is still to be inserted by the session would be so before its query; then the query has to be sent.
    """
    secondary = loader.parent_property.secondary
    table = loader.mapper.local_table if secondary is None else secondary
    if session._new or loader._query_info.load_only_child or not isinstance(table, Table) or table.schema:
        return False
    driver = session.connection(bind_arguments={"mapper": loader.mapper}).connection.driver_connection
    try:
        return not driver.execute(f'SELECT EXISTS (SELECT 1 FROM "{table.name}")').fetchone()[0]
    except sqlite3.Error:  # the query will meet it as well, and the projects know its errors
        return False
