from __future__ import annotations

import re
import resource
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from openstack_prep.base.errors import SpecError
from openstack_prep.base.formats import yaml_places
from openstack_prep.base.formats.yaml_places import Document, read_documents, shared_document
from tests.unit.texts import Wording, contains, expect_error

SHIPPED = Path(__file__).parents[4] / "install_configs"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "spec.yaml"


def read(path: Path, text: str) -> Document:
    path.write_text(text, encoding="utf-8")
    return Document(path)


def refused(path: Path, text: str | bytes) -> str:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(SpecError) as caught:
        Document(path)
    (mistake,) = caught.value.mistakes
    assert mistake.fix
    return str(mistake)


NESTED = """\
# a comment
name: ocp4
users:
  - name: one
    password:
      env: PASSWORD
  - {name: two,
     email: x}
"""


@pytest.mark.parametrize(
    ("where", "line"),
    [
        ((), 1),
        (("name",), 2),
        (("users",), 3),
        (("users", 0), 4),
        (("users", 0, "password"), 5),
        (("users", 0, "password", "env"), 6),
        (("users", 1), 7),
        (("users", 1, "email"), 8),
        (("users", 1, "gone"), 7),
        (("users", 2), 3),
        (("users", 0, "password", "gone", "deeper"), 5),
        (("gone",), 1),
    ],
)
def test_a_place_is_its_line_or_that_of_what_is_around_it(path: Path, where: tuple[str | int, ...], line: int) -> None:
    assert read(path, NESTED).place(where) == f"{path}:{line}"


def test_the_place_of_a_merged_key_is_where_it_counts(path: Path) -> None:
    document = read(path, "base: &base {ram: 1, cpu: 1}\nflavor:\n  <<: *base\n  ram: 2\n")
    assert document.place(("flavor", "ram")) == f"{path}:4"
    assert document.place(("flavor", "cpu")) == f"{path}:1"


def test_the_data_is_what_yaml_says(path: Path) -> None:
    data = read(path, "a: [1, true, ~, yes, 2026-11-21]\nb: &same {c: 1.5}\nd: *same\n").data
    assert data == {"a": [1, True, None, "yes", "2026-11-21"], "b": {"c": 1.5}, "d": {"c": 1.5}}


def test_merge_keys_work_and_are_no_repetition(path: Path) -> None:
    document = read(path, "base: &base {ram: 1}\nother: &other {cpu: 1}\nflavor: {<<: *base, ram: 2}\n")
    assert document.data["flavor"] == {"ram": 2}
    assert document.repeated == []


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n"])
def test_an_empty_file_has_no_data(path: Path, text: str) -> None:
    assert read(path, text).data is None


def test_a_byte_order_mark_is_no_part_of_the_text(path: Path) -> None:
    assert read(path, "\ufeffname: größe\n").data == {"name": "größe"}


def test_every_key_given_twice_is_a_mistake(path: Path, wording: Wording) -> None:
    document = read(path, "name: a\nquota:\n  cores: 1\n  cores: 2\nname: b\nlist:\n  - {x: 1, x: 2, x: 3}\n")
    wording([str(each) for each in document.repeated])


def test_the_syntax_is_wrong(path: Path) -> None:
    assert refused(path, "name: ocp4\nusers: [\n").startswith(f"{path}:3: is not YAML: ")


@pytest.mark.parametrize("value", ["*hush", "!hush", "!hush!it", "&hush a\nb: &hush a", "!!int hush"])
def test_a_password_without_quotes_is_not_shown(path: Path, value: str, wording: Wording) -> None:
    said = refused(path, f"password: {value}\n")
    wording(said)
    assert "hush" not in said


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: !secret x\n", 1),
        ("a: 1\nb: !!python/object:os.system x\n", 2),
        ("a: 1\n? [b]\n: 2\n", 2),
        ("a: 1\n{b: c}: d\n", 2),
        ("a: *gone\n", 1),
        ("a: 1\nb: !!timestamp 2024-13-45\n", 2),
        ("a: 1\nb: !!int five\n", 2),
        ('a: 1\nb: "\\ud800"\n', 2),
        ('a: 1\n"\\udfff": b\n', 2),
        ("a: 1\n!!timestamp 2026-01-01: b\n", 2),
        ("a: 1\n!!binary aGk=: b\n", 2),
        ("a: 1\nb: !!set {c, d}\n", 2),
        ("a: 1\nb: !!omap [c: d]\n", 2),
        ("a: 1\nb: !!bool hush\n", 2),
        ("a: 1\nb: !!int ''\n", 2),
        ("a: 1\nb: !!float ''\n", 2),
        (f"a: 1\nb: 0x{'f' * 5000}\n", 2),
        (f"a: 1\n0b{'1' * 5000}: b\n", 2),
        (f"a: 1\nb: 1{':1' * 3000}\n", 2),
        ("a: 1\nb: \x0bc\n", 2),
        ("a: 1\r\nb: \x00c\n", 2),
    ],
)
def test_what_yaml_cannot_mean_is_named_with_its_line(path: Path, text: str, line: int) -> None:
    assert refused(path, text).startswith(f"{path}:{line}: is not YAML: ")


def test_an_alias_within_itself(path: Path) -> None:
    assert refused(path, "a: 1\nb: &b [*b]\n").startswith(f"{path}:2: ")


def test_brackets_without_end(path: Path) -> None:
    assert contains(refused(path, "[" * 500 + "]" * 500), f"{path}:1", "100")


def test_aliases_of_aliases_do_not_take_for_ever(path: Path) -> None:
    """Nine lines that would be a thousand million texts when written out."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert "aliases" in refused(path, "\n".join(lines))


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", "name: größe".encode("latin-1"), b"a: \x00", b"a: \x07"])
def test_what_is_no_text(path: Path, data: bytes) -> None:
    assert refused(path, data).startswith(str(path))


def test_standard_input_is_named(path: Path) -> None:
    for name in ("/dev/stdin", "-"):
        with pytest.raises(SpecError) as caught:
            Document(Path(name), "a: [")
        assert [each.where for each in caught.value.mistakes] == ["standard input:1"]


def test_a_file_that_is_not_there(path: Path) -> None:
    with expect_error(SpecError, "spec.yaml", code="spec.unreadable"):
        Document(path)


def test_a_folder_is_no_file(tmp_path: Path, wording: Wording) -> None:
    with pytest.raises(SpecError) as caught:
        Document(tmp_path)
    wording(caught.value)


def test_a_shared_document_is_parsed_again_when_its_text_has_changed(path: Path) -> None:
    path.write_text("name: first")
    first = shared_document(path)
    assert shared_document(path) is first
    path.write_text("name: again")  # of the same length, and perhaps at the same time
    assert shared_document(path).data == {"name": "again"}
    path.write_text("name: [")
    for _ in range(2):
        with pytest.raises(SpecError):
            shared_document(path)


def everywhere(data: object, where: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of each part of a document."""
    yield where
    parts = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for step, value in parts:
        yield from everywhere(value, (*where, step))


@pytest.mark.parametrize("name", sorted(each.name for each in SHIPPED.glob("*.yaml")))
def test_both_parsers_read_a_document_alike(name: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_text((SHIPPED / name).read_text().replace("?", "."))
    assert not yaml_places.UNLIKE.search(path.read_text())
    found = []
    for slow in (False, True):
        if slow:
            monkeypatch.setattr(yaml_places, "UNLIKE", re.compile(""))
        document = Document(path)
        found.append(
            [document.data]
            + [
                (document.place(each), document.is_quoted(each), document.part(each))
                for each in everywhere(document.data)
            ]
        )
    assert found[0] == found[1]


@pytest.mark.parametrize("text", ["a: {b: c?d}", "a: >#x", "a: b: c", "- [" * 200])
def test_what_pyyaml_refuses_is_refused_in_its_words(path: Path, text: str) -> None:
    assert "is not YAML" in refused(path, text) or "nested" in refused(path, text)


@pytest.mark.parametrize(("text", "line"), [("a: 1\n---\nb: 2\n", 2), ("a: 1\nb:\tc\n", 2)])
def test_what_is_yaml_and_refused_is_not_called_otherwise(path: Path, text: str, line: int) -> None:
    assert refused(path, text).startswith(f"{path}:{line}: ")
    assert "is not YAML" not in refused(path, text)


@pytest.mark.parametrize("text", ["a:\tb\n", "a: [b\t]\n", "a: b\t\n"])
def test_tabs_are_read_as_programs_in_go_read_them(path: Path, text: str) -> None:
    assert Document(path, text, of_go=True).data in ({"a": "b"}, {"a": ["b"]})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("!!int '5'", 5),
        ("!!float 5", 5.0),
        ("!!bool 'yes'", True),
        ("!!null ''", None),
        ("!!str 5", "5"),
        ("!!timestamp 2026-01-01", "2026-01-01"),
        ("!!timestamp 2026-1-1t10:00:00.5Z", "2026-1-1t10:00:00.5Z"),
        ("!!binary aGk=", "hi"),
        ("!!set {a: }", {"a": None}),
        ("!x 5", "5"),
    ],
)
def test_tags_are_read_as_programs_in_go_read_them(path: Path, text: str, value: object) -> None:
    data = Document(path, f"a: {text}\n", of_go=True).data
    assert data == {"a": value}
    assert type(data["a"]) is type(value)  # type: ignore[index]


@pytest.mark.parametrize(
    "text",
    ["!!null x", "!!int 5.5", "!!bool 1", "!!float x", "!!timestamp x", "!!binary '='", "!!timestamp 2026-13-01"],
)
def test_tags_that_programs_in_go_cannot_decode(path: Path, text: str) -> None:
    with pytest.raises(SpecError, match=r":1: .*does not match its tag"):
        Document(path, f"a: {text}\n", of_go=True)


TEN = "- {name: a}\n" * 60_000
"""More parts than are read; the rest of a text is not looked at."""


@pytest.mark.parametrize(
    "text",
    [
        f"networks:\n{TEN * 20}",
        f"a: b?c\nz: {{a: b?c}}\nnetworks:\n{TEN}",
        "a: &a [x]\nb:\n" + "- *a\n" * 60_000,
        "[" + "[]," * 1_000_000 + "[]]",
    ],
    ids=["list", "not for libyaml", "aliases", "json"],
)
def test_a_text_with_too_many_parts_is_refused_while_it_is_read(path: Path, text: str, wording: Wording) -> None:
    begun, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wording(refused(path, text))
    with pytest.raises(SpecError, match="is too large"):
        read_documents("stdin", text)
    assert time.monotonic() - begun < 30
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400 * 1024, "KiB"


def test_many_small_documents(wording: Wording) -> None:
    with pytest.raises(SpecError) as caught:
        read_documents("stdin", "---\n- a\n" * 200_000)
    wording(caught.value)
    assert len(read_documents("stdin", "---\n- a\n" * 1000)) == 1000


def test_a_long_text_is_no_excess(path: Path) -> None:
    document = f"a: {'x' * 4_000_000}\n"
    assert len(read(path, document).data["a"]) == 4_000_000  # type: ignore[index]
    assert len(read_documents("stdin", document)) == 1


def test_a_spec_with_thousands_of_resources_is_read(path: Path) -> None:
    port = "  - {name: p, network: n, fixed_ips: [{subnet: s, address: 10.0.0.5}], security_groups: [a, b]}\n"
    assert len(read(path, f"name: lab\nports:\n{port * 4500}").data["ports"]) == 4500  # type: ignore[index]


def test_a_file_whose_name_is_spelt_otherwise_is_asked_for(tmp_path: Path) -> None:
    """And the file that the question names is read."""
    (tmp_path / "shop.yaml").write_text("name: shop\n")
    with pytest.raises(SpecError) as caught:
        shared_document(tmp_path / "shop.yml")
    meant = re.search(r"did you mean (\S+)\?", str(caught.value))
    assert meant is not None
    assert shared_document(Path(meant[1])).data == {"name": "shop"}
