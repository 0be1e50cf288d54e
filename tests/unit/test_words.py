"""Everything a person reads uses the words of the field: a list of words and phrases that must not come back.

The texts are those of messages, docstrings, comments, documents, shipped specs and templates, and ``--help``.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from openstack_prep.cli.main import build_parser

ROOT = Path(__file__).parents[2]
HELP = "--help"

EXEMPT = ("heat_templates/rke2-setup.sh",)
"""Texts that reach servers as they are: another word would replace the servers of every cluster."""

WORDS = {
    "allow, with --allow-replace": r"consent(s|ed|ing)?",
    "delete, remove": r"tak(e|es|en|ing) back|saw off",
    "differs from the spec": r"(is|are|was|be) another|as it should be|of another mind",
    "does not exist": r"(?<!\bthere\s)(is|are) (?-i:none)(?! of)|there are none|is too much|are no indexes",
    "only applies together with": r"means? nothing t?here",
    "ensure": r"(make|makes|made|making) sure of",
    "enforced by, prevents": r"stands? in the way|kept? from (it|everybody)",
    "fix": r"mend(s|ed|ing)?|remed(y|ies)",
    "left untouched": r"to the letter|stays? as it is",
    "managed by this spec": r"ours|somebody else's|(not|was) made by this spec",
    "must not overlap": r"to lie apart|(keep|kept) (the \w+|them|these) apart|lies? outside",
    "ownership tag": r"(our|its|their|whose|the|carr(y|ies) (the|a)) (mark|sign)s?(?! for)",
    "path (from outside to the API)": r"(the|no|one) way to the (API|console|cloud|nodes)",
    "per": r"(one|a) (list|call|request|line|YAML file|name|port|step|client|limit) a \w+|once a (run|spec)",
    "reported, printed": r"told|said|tell apart|tells apart",
    "reserve an address": r"(keep|keeps|kept) (free|addresses free)|free of servers",
    "retry, transient error": r"look(s|ed|ing)? (once more|again|anew)|passing faults?|tried again",
    "update": r"put(s|ting)? (it |them |all |every port )?right",
    "update, re-create": r"(make|makes|made|making) (it |them |that )?(so|again|anew)|anew",
    "(plain words)": r"a breath later|comes too late|in vain|goes without saying|as it stands|has its say|looked at",
}
"""What to write instead, and the expression that finds what must not be written; without regard to case."""

CODE = re.compile(r"``.*?``|(?<!`)`[^`\n]+`(?!`)", re.DOTALL)
UNWANTED = {
    better: re.compile(rf"\b({words})\b".replace(" ", r"\s+(#\s+)?"), re.IGNORECASE) for better, words in WORDS.items()
}


def texts_of(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the lines and texts of docstrings and of strings with several words; of f-strings without their values."""
    for child in ast.walk(node):
        if isinstance(child, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in child.values]
            yield child.lineno, "".join(map(str, parts))
        elif isinstance(child, ast.Constant) and isinstance(child.value, str) and " " in child.value:
            yield child.lineno, child.value


def comments_of(source: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def helps(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield the help of a command and of its subcommands."""
    yield parser.format_help()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from helps(command)


def texts() -> Iterator[tuple[str, int, str]]:
    """Yield what a person reads: where it is, its line, and the text."""
    for path in sorted((ROOT / "openstack_prep").rglob("*.py")):
        source = path.read_text()
        for line, text in (*texts_of(ast.parse(source)), *comments_of(source)):
            yield str(path.relative_to(ROOT)), line, text
    documents = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *(ROOT / "docs").glob("*.md")]
    for folder in ("install_configs", "heat_templates"):
        documents += [*(ROOT / folder).glob("*.yaml"), *(ROOT / folder).glob("*.sh")]
    for path in sorted(documents):
        yield str(path.relative_to(ROOT)), 1, path.read_text()
    for text in helps(build_parser()):
        yield HELP, 1, text


def unwanted(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the phrase and what to write instead; code between backquotes does not count."""
    plain = CODE.sub(lambda code: "\n" * code[0].count("\n"), text)
    for better, expression in UNWANTED.items():
        for found in expression.finditer(plain):
            yield plain.count("\n", 0, found.start()), " ".join(found[0].split()), better


def test_texts_use_the_words_of_the_field() -> None:
    wrong = [
        f"{where}:{line + below}: {phrase!r}; write: {better}"
        for where, line, text in texts()
        if not where.startswith(EXEMPT)
        for below, phrase, better in unwanted(text)
    ]
    assert not wrong, "\n" + "\n".join(sorted(set(wrong)))


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("its content is another: it has", "is another"),
        ("exists, was not made by this spec, and", "not made by this spec"),
        ("# take\n# back what is left", "take # back"),
        ("the ports are to lie apart", "to lie apart"),
        ("'x' is none", "is none"),
        ("one list a project", "one list a project"),
        ("mend: openstack-prep apply", "mend"),
    ],
)
def test_an_unwanted_phrase_is_found(text: str, phrase: str) -> None:
    assert phrase in [found for _, found, _ in unwanted(text)]


@pytest.mark.parametrize("text", ["``fix`` is the fix", "a `told` field", "None if there is none", "one of a kind"])
def test_technical_words_are_not_mistaken_for_phrases(text: str) -> None:
    assert not list(unwanted(text))
