"""The benchmark: one scenario done by several contenders, and one image's way, on a devcloud of its own.

``python -m tests.bench`` and ``python -m tests.bench image`` measure; docs/performance.md says what,
how, and what came out.
"""
