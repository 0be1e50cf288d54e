"""The text of pool files: what is kept, what git merges, and every damage with its line."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from openstack_prep.base.errors import SpecError
from openstack_prep.exposures.register import pool_file
from openstack_prep.exposures.register.pool import Claim, ClaimRequest, PoolContent, PoolSettings
from tests.unit.texts import Wording

SETTINGS = PoolSettings(cidr="10.0.0.0/24", gateway="10.0.0.1", addresses=("10.0.0.100-10.0.0.199",))
POOL = PoolContent(
    name="lab",
    id="0123456789abcdef",
    settings=SETTINGS,
    users={"s": "p1"},
    claims={"s/a": Claim(address="10.0.0.100", mac="d2:00:00:00:00:01"), "s/c": Claim(address="10.0.0.101")},
)
HERE = Path("pool.yaml")


def text() -> str:
    return pool_file.write(None, POOL, "")


def damage(text: str) -> list[tuple[str, str]]:
    with pytest.raises(SpecError) as caught:
        pool_file.read(HERE, text)
    assert all(each.fix for each in caught.value.mistakes)
    return [(each.where.partition(": ")[0], each.what) for each in caught.value.mistakes]


def line_of(text: str, part: str) -> str:
    return f"pool.yaml:{next(number for number, line in enumerate(text.splitlines(), 1) if part in line)}"


def test_what_is_written_is_read_and_each_claim_is_a_line() -> None:
    assert pool_file.read(HERE, text()) == POOL
    assert "  s/a: {address: 10.0.0.100, mac: 'd2:00:00:00:00:01'}\n  s/c: {address: 10.0.0.101}\n" in text()


@pytest.mark.parametrize("spec", ["ü", "-", "~", "%", "a b/c", "null", "#", "{x}", "1:2", "x: y"])
def test_any_name_of_a_spec_can_claim(spec: str) -> None:
    used = PoolContent(name=spec, id=POOL.id, settings=SETTINGS, users={spec: ""})
    after = used.claim(spec, [ClaimRequest(name="a", mac=True)])
    written = pool_file.write(used, after, pool_file.write(None, used, ""))
    assert pool_file.read(HERE, written) == after
    assert len(after.of_spec(spec)) == 1


def test_only_changed_lines_are_written_and_comments_stay_with_their_claims() -> None:
    before = text().replace("  s/c:", "  # of the shop\n  s/c:").replace("claims:", "# who has what\nclaims:")
    after = POOL.claim("s", [ClaimRequest(name=name) for name in ("b", "d", "Z")]).release("s", ["a"])
    lines = pool_file.write(POOL, after, before).splitlines()
    assert lines[-6:] == [
        "claims:",
        "  s/Z: {address: 10.0.0.102}",
        "  s/b: {address: 10.0.0.103}",
        "  # of the shop",
        "  s/c: {address: 10.0.0.101}",
        "  s/d: {address: 10.0.0.104}",
    ]
    assert set(before.splitlines()) - set(lines) == {"  s/a: {address: 10.0.0.100, mac: 'd2:00:00:00:00:01'}"}
    assert pool_file.read(HERE, "\n".join(lines)) == after


@pytest.mark.parametrize(
    "given",
    [text().replace("  s/", "      s/"), text().replace("claims:\n  s/a: {", "claims: {s/a: {").split("s/c")[0]],
)
def test_other_forms_of_yaml_are_changed_too(given: str) -> None:
    given = given if "claims:\n" in given else given.rstrip() + "}\n"
    before = pool_file.read(HERE, given)
    after = before.claim("s", [ClaimRequest(name="b"), ClaimRequest(name="a", address="10.0.0.150")])
    assert pool_file.read(HERE, pool_file.write(before, after, given)) == after


def test_git_merges_claims_of_two_branches_and_a_conflict_is_named(tmp_path: Path, wording: Wording) -> None:
    """Lines apart merge by themselves; neighbours are a conflict, in which each side has whole lines."""

    def git(*words: str, code: int = 0) -> None:
        options = ["-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "merge.conflictStyle=diff3"]
        assert subprocess.run(["git", *options, *words], cwd=tmp_path, capture_output=True).returncode == code, words

    path = tmp_path / "pool.yaml"

    def commit(pool: PoolContent) -> None:
        path.write_text(pool_file.write(POOL, pool, path.read_text()))
        git("commit", "-qam", "claim")

    git("init", "-q", "-b", "main")
    path.write_text(text())
    git("add", ".")
    git("commit", "-qm", "pool")
    git("branch", "other")
    git("branch", "near")
    mine = POOL.claim("s", [ClaimRequest(name="aa", address="10.0.0.110")])
    commit(mine)
    git("switch", "-q", "other")
    commit(POOL.claim("s", [ClaimRequest(name="d", address="10.0.0.111")]))
    git("switch", "-q", "main")
    git("merge", "-q", "--no-edit", "other")
    assert sorted(pool_file.read(path, path.read_text()).of_spec("s")) == ["a", "aa", "c", "d"]
    git("switch", "-q", "near")
    commit(POOL.claim("s", [ClaimRequest(name="b", address="10.0.0.110")]))
    git("switch", "-q", "main")
    git("merge", "-q", "--no-edit", "near", code=1)
    with pytest.raises(SpecError) as caught:
        pool_file.read(path, path.read_text())
    assert [each.what[:7] for each in caught.value.mistakes] == ["<<<<<<<", "|||||||", "=======", ">>>>>>>"]
    assert [
        path.read_text().splitlines()[int(each.where.rpartition(":")[2]) - 1][:7] for each in caught.value.mistakes
    ] == [
        "<<<<<<<",
        "|||||||",
        "=======",
        ">>>>>>>",
    ]
    kept = [line for line in path.read_text().splitlines() if not pool_file.CONFLICT.match(line)]
    wording(damage("\n".join(kept)))


@pytest.mark.parametrize(
    ("old", "new", "line", "what"),
    [
        ("s/c:", "s/a:", "s/a: {address: 10.0.0.101", "duplicate key s/a, also in line"),
        ("10.0.0.101", "10.0.0.100", "s/c", "s/c: address 10.0.0.100 is also that of s/a"),
        ("0.101}", "0.101, mac: 'd2:00:00:00:00:01'}", "s/c", "s/c: MAC address d2:00:00:00:00:01 is also that of s/a"),
        ("0.101}", "0.101, mac: '02:00:00:00:00:01'}", "s/c", "s/c: MAC address 02:00:00:00:00:01 is in the range of"),
        ("0.101}", "0.101, mac: 'd3:00:00:00:00:01'}", "s/c", "s/c: MAC address d3:00:00:00:00:01 is a multicast"),
        ("0.101}", "0.101, mac: 12:34:56:10:20:30}", "s/c", "base 60"),
        ("10.0.0.101", "10.0.0.1", "s/c", "s/c: address 10.0.0.1 is the gateway"),
        ("10.0.0.101", "10.0.0.255", "s/c", "s/c: address 10.0.0.255 is the broadcast address"),
        ("10.0.0.101", "10.0.0.99", "s/c", "s/c: address 10.0.0.99 is not one of its addresses"),
        ("{address: 10.0.0.101}", "10.0.0.101", "s/c", "10.0.0.101"),
        ("address: 10.0.0.101", "adress: 10.0.0.101", "s/c", "is missing"),
        ("version: 1", "version: 2", "version", "version: 2 is unknown to this release"),
        ("version: 1", "version: one", "version", 'version: "one" is unknown'),
        ("version: 1\n", "", "#", "is not a pool file"),
        ("id: 0123456789abcdef", "id: x", "id:", '"x" is not the id of a pool file'),
        ("id: 0123456789abcdef", "id: 5", "id:", "5 is not text"),
        ("cidr: 10.0.0.0/24", "cidr: 10.0.0.1/24", "cidr", "is not a network in CIDR notation"),
        ("gateway: 10.0.0.1\n", "gateway: 10.0.1.1\n", "network:", "gateway 10.0.1.1 is outside 10.0.0.0/24"),
        ("claims:", "claims: [", "s/c", "is not YAML"),
        ("claims:", "claim:", "claim:", "unknown key"),
    ],
)
def test_damage_is_named_with_its_line_and_its_fix(old: str, new: str, line: str, what: str) -> None:
    given = text().replace(old, new, 1)
    assert given != text()
    found = damage(given)
    place = line_of(given, line)
    assert any(where == place and what in said for where, said in found), (place, what, found)


def test_all_mistakes_are_named_at_once() -> None:
    given = (
        text().replace("id: 0123456789abcdef", "id: 5").replace("10.0.0.100,", "10.0.0.300,").replace("s/c", "s/a/b")
    )
    assert len(damage(given)) == 2
    assert len(damage(text().replace("10.0.0.100,", "10.0.0.1,").replace("10.0.0.101}", "10.0.0.0}"))) == 2


def test_a_name_with_a_leading_zero_is_refused_at_its_line() -> None:
    given = text() + "  010: {address: 10.0.0.150}\n"
    ((where, what),) = damage(given)
    assert where == line_of(given, "010")
    assert "leading zero" in what


@pytest.mark.parametrize("name", ["~", "1.5", "true"])
def test_a_name_that_yaml_reads_as_something_else_is_refused(name: str) -> None:
    """Its line could not be found again when the file is written."""
    ((where, what),) = damage(text() + f"  {name}: {{address: 10.0.0.150}}\n")
    assert where == line_of(text(), "claims:")
    assert "no text" in what
    quoted = pool_file.read(HERE, text() + f"  '{name}': {{address: 10.0.0.150}}\n")
    assert quoted.claims[name].address == "10.0.0.150"
