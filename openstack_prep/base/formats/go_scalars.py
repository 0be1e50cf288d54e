"""Plain scalars of YAML as programs in Go read them: by yaml.v2, below sigs.k8s.io/yaml and ghodss/yaml.

They differ from YAML 1.2 (``yes`` is true), and from PyYAML (``1:30`` is a text, ``1e3`` a number, and ``08`` 8).
Source: go.yaml.in/yaml v2.4.2 resolve.go (resolve); sigs.k8s.io/yaml 1.6 yaml.go (convertToJSONableObject).
"""

from __future__ import annotations

import math
import re
import struct

_WORDS: dict[str, bool | float | None] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_INTEGER = re.compile("[-+]?(?:0[xX](?P<x>[0-9a-fA-F]+)|0[bB](?P<b>[01]+)|0[oO]?(?P<o>[0-7]+)|(?P<d>0|[1-9][0-9]*))")
_BASES = {"x": 16, "b": 2, "o": 8, "d": 10}
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_LONGEST = 4096
"""Characters of a number; all longer ones overflow."""


def resolve(text: str) -> bool | int | float | str | None:
    """Return the value of a plain scalar."""
    if text in _WORDS:
        return _WORDS[text]
    if not text[0].isascii() or not re.match("[-+.0-9]", text) or len(text) > _LONGEST:
        return text
    between = "(?<=[0-9])_(?=[0-9])" if text[0] == "." else "_"  # where ParseFloat takes them, and ParseInt all
    plain = re.sub(between, "", text)
    number = _integer(plain)
    if number is not None:
        return number
    if _FLOAT.fullmatch(plain) and math.isfinite(value := float(plain)):  # ParseFloat refuses what overflows
        return value
    return text


def _integer(plain: str) -> int | None:
    """Return an integer in the range of int64 or, without a sign, of uint64, as ParseInt and ParseUint read it."""
    found = _INTEGER.fullmatch(plain)
    if found is None:
        return None
    kind = str(found.lastgroup)
    value = int(found[kind], _BASES[kind])
    if plain[0] in "+-":
        value = -value if plain[0] == "-" else value
        return value if -(2**63) <= value < 2**63 else None
    return value if value < 2**64 else None


def as_text(value: object) -> object:
    """Return a boolean or a number as the text that a field for texts gets; anything else as it is."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    return _shortest(value) if isinstance(value, float) else value


def _shortest(value: float) -> str:
    """Return the shortest text that leads to the same number of 32 bits: FormatFloat(value, 'g', -1, 32)."""
    if not math.isfinite(value) or abs(value) > 3.4028235677973366e38:
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    single = struct.pack("f", value)
    if not any(single[:3]) and single[3] in (0, 0x80):
        return "-0" if single[3] else "0"
    text = next(each for each in (f"{value:.{digits - 1}e}" for digits in range(1, 10)) if _packed(each) == single)
    digits, _, exponent = text.partition("e")
    power = int(exponent)
    if -5 < power < 6:
        return f"{float(text):.{max(0, len(digits.lstrip('-').replace('.', '')) - 1 - power)}f}"
    return f"{digits}e{'-' if power < 0 else '+'}{abs(power):02}"


def _packed(text: str) -> bytes:
    value = float(text)
    return struct.pack("f", value) if abs(value) <= 3.4028235677973366e38 else b""
