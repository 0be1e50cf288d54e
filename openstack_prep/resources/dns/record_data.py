"""Data of DNS records: one form of each, and what Designate accepts as the data and the names of recordsets.

Sources: Designate 23.0.0, objects/rrdata_*.py (from_string), objects/fields.py, common/constants.py (RE_HOSTNAME,
RE_ZONENAME, RE_SRV_HOST_NAME), api/v2/controllers/zones/recordsets.py (TLSA); RFC 1035, section 5.1 (TXT).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Literal

from openstack_prep.base.invalid import InvalidValue

RecordType = Literal[
    "A", "AAAA", "CAA", "CERT", "CNAME", "HTTPS", "MX", "NAPTR",
    "NS", "PTR", "SPF", "SRV", "SSHFP", "SVCB", "TLSA", "TXT",
]  # fmt: skip
"""The types whose recordsets users create (conf/base.py, supported_record_type); Designate writes SOA itself."""
LONGEST_NAME = 253
"""Characters of a name without its final dot."""
LONGEST_STRING = 253
"""Characters of a string within a TXT record: Designate counts its quotation marks, and takes 255."""
_NUMBERS = {"CNAME": 0, "NS": 0, "PTR": 0, "MX": 1, "SRV": 3}
"""How many numbers precede the name in records that end with one."""
_LABEL = r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)"
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_PREFIXED = {"SRV": r"_[a-z0-9_-]{1,63}\._[a-z0-9_-]{1,63}", "TLSA": r"_\d{1,5}\._[a-z]+"}
"""How the names of some types begin."""
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')


def recordset_name(value: object) -> object:
    """Read the name of a recordset, perhaps a wildcard such as *.apps.example.com; case and a final dot do not matter.

    Other than names of hosts, it may contain underscores.
    """
    if not isinstance(value, str):
        return value
    name = value.lower().removesuffix(".")
    if len(name) > LONGEST_NAME or not _NAME.fullmatch(name.removeprefix("*.")):
        raise InvalidValue("is not a DNS name", "use one such as shop.example.com or *.apps.example.com")
    return name


def zone_name(value: object) -> object:
    """Read the name of a zone; case and a final dot do not matter."""
    name = recordset_name(value)
    if isinstance(name, str) and (name.startswith("*.") or "." not in name):
        raise InvalidValue("is not the name of a zone", "use one such as example.com")
    return name


def is_within(name: str, zone: str) -> bool:
    """Whether a name belongs to a zone, or to one below it."""
    return name == zone or name.endswith(f".{zone}")


def canonical(kind: str, text: str) -> str:
    """Return the data of a record in the form that is compared and sent; invalid data are returned as they are."""
    text = text.strip()
    if kind in ("A", "AAAA"):
        try:
            return str(ipaddress.ip_address(text))
        except ValueError:
            return text
    if kind in _NUMBERS:
        *numbers, name = text.lower().split() or [""]
        return " ".join((*numbers, name if name.endswith(".") else f"{name}."))
    if kind in ("TXT", "SPF") and not text.startswith('"'):
        return _quoted(text)
    return text


def _quoted(text: str) -> str:
    """Return a text as the strings of a TXT record, of which none is too long and none ends within an escape."""
    parts = [""]
    for each in text:
        escaped = f"\\{each}" if each in '"\\' else each
        if len(parts[-1]) + len(escaped) > LONGEST_STRING:
            parts.append("")
        parts[-1] += escaped
    return " ".join(f'"{part}"' for part in parts)


def problem(kind: str, text: str) -> InvalidValue | None:
    """Return why Designate refuses the data of a record; None for types that only Designate judges."""
    data = canonical(kind, text)
    if not text.strip() or not data.isprintable():
        return InvalidValue("is empty or contains control characters", "use the data of one record")
    if kind in ("A", "AAAA"):
        return _not_an_address(kind, data)
    if kind in _NUMBERS:
        return _not_a_name(kind, data)
    if kind in ("TXT", "SPF"):
        return _not_strings(data)
    return None


def _not_an_address(kind: str, data: str) -> InvalidValue | None:
    version, example = (4, "192.0.2.10") if kind == "A" else (6, "2001:db8::10")
    try:
        if ipaddress.ip_address(data).version == version:
            return None
    except ValueError:
        pass
    return InvalidValue(f"is not an IPv{version} address", f"use one such as {example}, or another type")


def _not_a_name(kind: str, data: str) -> InvalidValue | None:
    *numbers, name = data.split()
    examples = {"MX": "10 mail.example.com", "SRV": "0 5 443 shop.example.com"}
    fix = f"use one such as {examples.get(kind, 'shop.example.com')}"
    if len(numbers) != _NUMBERS[kind]:
        count = _NUMBERS[kind]
        return InvalidValue(f"is not {f'{count} numbers and ' if count else ''}a DNS name", fix)
    if any(not re.fullmatch(r"0|[1-9]\d{0,4}", number) or int(number) > 65535 for number in numbers):
        return InvalidValue("has a number that is not 0-65535", fix)
    host = name.removesuffix(".")
    no_mail = (kind, host) == ("MX", "")  # RFC 7505
    if not no_mail and (len(host) > LONGEST_NAME or not _NAME.fullmatch(host)):
        return InvalidValue("does not end with a DNS name", fix)
    return None


def _not_strings(data: str) -> InvalidValue | None:
    """Return why data are not the strings of a TXT record: quoted, each of them short enough."""
    fix = "write the text without quotation marks, or as several strings in quotation marks, separated by a space"
    if not data.isascii():
        return InvalidValue(
            "contains characters other than ASCII", "write each of their bytes as a backslash and 3 digits"
        )
    if not re.fullmatch(rf"{_QUOTED.pattern}(?: {_QUOTED.pattern})*", data):
        return InvalidValue("is not quoted as in a zone file", fix)
    if '" "' in data and len(data) <= LONGEST_STRING + 2:
        return InvalidValue("has several strings, which Designate only takes beyond 255 characters", "write one string")
    if any(len(each) > LONGEST_STRING for each in _QUOTED.findall(data)):
        return InvalidValue(f"has a string of more than {LONGEST_STRING} characters", fix)
    return None


def contradictions(name: str, zone: str, kind: str, records: tuple[str, ...]) -> Iterator[InvalidValue]:
    """Yield why Designate refuses a recordset (central/service.py, _validate_recordset; storage: the zone's own NS)."""
    if not is_within(name, zone):
        yield InvalidValue(f"{name} is not in the zone {zone}", f"use a name such as www.{zone}")
    if kind == "CNAME" and len(records) > 1:
        yield InvalidValue("a CNAME has exactly one record", "keep one of them")
    if kind in ("CNAME", "NS") and name == zone:
        what = "the zone itself cannot have a CNAME" if kind == "CNAME" else "Designate itself writes the zone's own NS"
        yield InvalidValue(what, "use a name below the zone")
    start = _PREFIXED.get(kind)
    if start and not re.match(rf"{start}\.", name):
        example = "_https._tcp." if kind == "SRV" else "_443._tcp."
        yield InvalidValue(f"the name of a {kind} record begins like {example}", f"use a name such as {example}{name}")
    for record in records:
        if found := problem(kind, record):
            yield InvalidValue(f"record {record!r} {found.what}", found.fix)
