"""Spares SQLAlchemy work for rows that there are none of, and queries that it cannot keep.

Before it fetches the first row of a query, the ORM prepares to build an instance with all its relationships, which for
some of Neutron's models takes more than half of a request (SQLAlchemy 2.1.9, orm/loading.py, instances and
_instance_processor). Most lists that tests read are empty. For relationships that Keystone and Neutron load by
"subquery" it also writes a new query then; "selectin" loads the same by a query that it writes once
(orm/strategies.py, _SubqueryLoader and _SelectInLoader).
"""

import sqlite3

from sqlalchemy.engine import cursor
from sqlalchemy.orm import RelationshipProperty, context, strategies


def tune():
    """Call before the first query."""
    _process_no_rows()
    _load_by_selectin()


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
