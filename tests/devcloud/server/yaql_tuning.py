"""Lets one thread at a time parse yaql, whose lexer belongs to all threads of a process.

Heat's workers are green threads or processes, which do not meet in it. Native threads do: a message to the engine is
then lost, and its stack stays in progress: "'Lexer' object has no attribute 'lexmatch'" (yaql 3.2.0,
language/factory.py, YaqlEngine.__call__; _ply/lex.py, Lexer.token).
"""

import threading

from yaql.language import factory


def tune():
    """Call before the engine starts."""
    lock = threading.RLock()  # options make a copy, which is called in turn
    parse = factory.YaqlEngine.__call__

    def parse_alone(self, expression, options=None):
        with lock:
            return parse(self, expression, options)

    factory.YaqlEngine.__call__ = parse_alone
