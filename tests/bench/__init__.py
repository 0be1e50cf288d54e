"""The benchmark: one scenario done by several contenders, on a devcloud of its own.

``python -m tests.bench`` measures; docs/performance.md says what, how, and what came out.
"""
