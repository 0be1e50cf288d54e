"""Types of fields: which values a spec may contain, and their normalised form.

Each is an ``Annotated`` standard type, so a dataclass made in Python takes plain values, while the spec reader
validates and normalises by the same declaration.
"""

from __future__ import annotations

import base64
import ipaddress
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar
from urllib.parse import urlsplit

from annotated_types import Ge, Gt, Le, Len
from pydantic_core import CoreSchema, core_schema

from openstack_prep.base.given_file import MOST_KEY, read_text, unreadable
from openstack_prep.base.invalid import InvalidValue, no_end_spaces, one_line
from openstack_prep.base.raw import Values
from openstack_prep.base.secret_forms import BARE_LOGIN

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue

_UNITS = {"": None, "b": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
_PATTERN = r"^\s*-?\d+(\.\d+)?\s*(([KkMmGgTt][Ii])?[Bb])?\s*$"
_SIZE = re.compile(r"\s*(-?\d{1,18}(?:\.\d{1,9})?)\s*([a-zA-Z]*)\s*")


@dataclass(frozen=True)
class Reads:
    """Annotates a field whose text is read by a function, which raises ValueError with the fix."""

    read: Callable[[object], object]
    schema: Values | None = None

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self.read, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(schema) if self.schema is None else self.schema

    def __hash__(self) -> int:
        return hash(self.read)


@dataclass(frozen=True)
class ReadsBeside:
    """Annotates a field that may name a file: its function also gets the folder of the spec."""

    read: Callable[[object, Path], object]
    schema: Values | None = None

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        def read(value: Any, info: Any) -> Any:
            return self.read(value, info.context["base"])

        return core_schema.with_info_before_validator_function(read, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(schema) if self.schema is None else self.schema

    def __hash__(self) -> int:
        return hash(self.read)


def matching(pattern: str, what: str, fix: str, number: str = "") -> Reads:
    """Return the annotation of texts that match a pattern as a whole.

    ``number`` is the fix where YAML reads such a text as a number unless it is in quotes.
    """
    compiled = re.compile(pattern)

    def read(value: object) -> object:
        if number and isinstance(value, int | float) and not isinstance(value, bool):
            raise InvalidValue("is a number in YAML", number)
        if isinstance(value, str) and not compiled.fullmatch(value):
            raise InvalidValue(what, fix)
        return value

    return Reads(read)


class Strict:
    """Base of dataclasses within a spec: they have no unknown keys, and no value of another type is converted."""

    __pydantic_config__: ClassVar[dict[str, object]] = {"extra": "forbid", "strict": True}


def size(unit: str) -> Callable[[object], object]:
    """Return a reader of sizes that returns whole numbers of a unit ("MiB" or "GiB")."""
    one = _UNITS[unit.lower()]
    assert one

    def read(value: object) -> object:
        if not isinstance(value, str):
            return value
        found = _SIZE.fullmatch(value)
        decimal = re.fullmatch(r"(\d{1,18}) ?([KMGT])[Bi]?", value, re.IGNORECASE)  # by 64GB people mean 64GiB
        if decimal and int(decimal[1]) * (_UNITS[f"{decimal[2].lower()}ib"] or 0) % one == 0:
            raise InvalidValue("is not a size", f"write {decimal[1]}{decimal[2].upper()}iB")
        if not found or found[2].lower() not in _UNITS:
            raise InvalidValue("is not a size", f"use a number of {unit}, or a number with a unit such as 16{unit}")
        factor = _UNITS[found[2].lower()]
        number = float(found[1]) * (factor or one) / one
        if number != int(number) or (factor and number < 0):
            raise InvalidValue(f"is not a whole number of {unit}")
        return int(number)

    return read


@dataclass(frozen=True)
class Size:
    """Annotates a number of a unit, which may also be written as text with a different unit."""

    unit: str

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(size(self.unit), handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        number = handler(schema) | {"description": f"a number of {self.unit}"}
        return {"anyOf": [number, {"type": "string", "pattern": _PATTERN, "description": f"such as 16{self.unit}"}]}


NOT_UNICAST = ("is multicast, and no machine has such an address", "use a unicast address")
"""What is wrong with one, and the fix: see ``multicast``."""


def address(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        found = parse_address(value)
    except ValueError:
        if "%" in value and is_address(value.partition("%")[0]):
            raise InvalidValue("names an interface of one machine", "leave out the % and what follows") from None
        raise InvalidValue("is not an IP address", "use one such as 192.0.2.10 or 2001:db8::10") from None
    if found.is_multicast:
        raise InvalidValue(*NOT_UNICAST)
    return str(found)


def parse_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return an IP address; raises ValueError, also for one with a zone, which neither Neutron nor Go takes."""
    if "%" in text:
        raise ValueError(text)
    return ipaddress.ip_address(text)


def is_address(text: str) -> bool:
    """Whether a text is an IP address, of either version."""
    try:
        parse_address(text)
    except ValueError:
        return False
    return True


def is_host(text: str, *, underscores: bool = False) -> bool:
    """Whether a text is an IP address or a host name; 10.0.0.256 is neither, as no top-level domain is a number.

    Resolvers and TLS also take names with ``underscores``; names of Kubernetes and of images do not have them.
    """
    if underscores:
        text = text.replace("_", "-")
    name = re.fullmatch(r"[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?", text)
    return is_address(text) or bool(name and ".." not in text and not text.rpartition(".")[2].isdecimal())


def cidr(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return str(ipaddress.ip_network(value))
    except ValueError as error:
        raise InvalidValue(f"is not a network in CIDR notation ({error})", "use one such as 192.0.2.0/24") from None


def block(value: object) -> object:
    """Read an address or a network; a network with one address becomes that address."""
    if not isinstance(value, str):
        return value
    try:
        found = ipaddress.ip_network(value)
    except ValueError as error:
        raise InvalidValue(
            f"is neither an address nor a network ({error})", "use one such as 192.0.2.10 or 192.0.2.0/24"
        ) from None
    return str(found[0] if found.num_addresses == 1 else found)


def mac(value: object) -> object:
    if not isinstance(value, str):
        return value
    if not re.fullmatch("([0-9a-f]{2}:){5}[0-9a-f]{2}", value.lower()):
        raise InvalidValue("is not a MAC address", "use one such as fa:16:3e:00:00:01")
    if value.lower() in ("00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff"):
        raise InvalidValue("is not the MAC address of any interface", "use one such as fa:16:3e:00:00:01")
    return value.lower()


def file_path(value: Any, base: Path) -> Any:
    """Return the absolute path of a file in a spec."""
    if not isinstance(value, str):
        return value
    if not value or "\0" in value:
        raise InvalidValue("is not a path", "use the path of a file")
    try:
        return os.path.normpath(base / Path(value).expanduser())
    except RuntimeError:
        raise InvalidValue("begins with a home directory that does not exist", "use the full path") from None


def public_key(value: object, base: Path) -> object:
    """Read an SSH public key, or a ``{file: PATH}`` that contains one."""
    if isinstance(value, dict) and list(value) == ["file"] and isinstance(value["file"], str):
        path = file_path(value["file"], base)
        try:
            value = read_text(Path(path), MOST_KEY)
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidValue(unreadable(error), "name another file, or create a key with ssh-keygen") from None
    if not isinstance(value, str):
        return value
    if "PRIVATE KEY" in value:
        raise InvalidValue("is a private key", "use the public key, whose file name ends in .pub")
    words = value.split(None, 2)
    if len(words) < 2 or "\n" in value.strip() or not _key_type(words[1]) == words[0]:
        raise InvalidValue("is not an SSH public key", "use one line such as: ssh-ed25519 AAAAC3... me@here")
    return value.strip()


def is_public_key(line: str) -> bool:
    """Whether a line is an SSH public key as in authorized_keys: options if any, type, base64, comment."""
    return any(_key_type(data) == name for name, data in pairwise(line.split()))


def _key_type(text: str) -> str | None:
    """Return the key type at the start of an SSH key's data."""
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        return None
    length = int.from_bytes(data[:4], "big")
    return data[4 : 4 + length].decode("ascii", "replace") if len(data) > 4 + length else None


def is_url(text: str) -> bool:
    """Whether a text is an http or https URL with a host, or a file URL."""
    if not text.startswith(("http://", "https://")):
        return text.startswith("file:///")
    try:
        parts = urlsplit(text)
        return bool(parts.hostname) and parts.port != 0  # the port is parsed here, and may be invalid
    except ValueError:
        return False


def source(value: object, base: Path) -> object:
    """Read the source of a file: a URL, or a path relative to the spec."""
    if not isinstance(value, str) or is_url(value):
        return value
    if "://" in value or BARE_LOGIN.match(value):
        raise InvalidValue("is neither a URL nor a path", "use an http, https or file URL, or a path such as ./FILE")
    return file_path(value, base)


_HEX_DIGITS = {32: "md5", 64: "sha256", 128: "sha512"}


def checksum(value: object) -> object:
    """Read a checksum, ``sha256:HEX`` and the like; without a prefix, the length determines the algorithm."""
    if not isinstance(value, str):
        return value
    algorithm, _, digits = value.strip().lower().rpartition(":")
    known = _HEX_DIGITS.get(len(digits)) if re.fullmatch("[0-9a-f]+", digits) else None
    if known is None or algorithm not in ("", known):
        raise InvalidValue("is not a checksum", "use sha256:, sha512: or md5: followed by hexadecimal digits")
    return f"{known}:{digits}"


def timestamp(text: str) -> str:
    """Read a time and convert it to UTC; without an offset it is UTC."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidValue("is not a time", "use one such as 2027-01-31T12:00:00Z") from None
    moment = moment.astimezone(UTC) if moment.tzinfo else moment
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _timestamp(value: object) -> object:
    return timestamp(value) if isinstance(value, str) else value


def words(value: object) -> object:
    """Read a text that YAML has interpreted as a number or a boolean."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


_PUBLIC_KEY = {
    "anyOf": [
        {"type": "string", "description": "the key: type, base64, comment"},
        {
            "type": "object",
            "properties": {"file": {"type": "string"}},
            "required": ["file"],
            "additionalProperties": False,
        },
    ]
}

# The limits are far above any cloud and far below a wrong unit (bytes instead of MiB).
MiB = Annotated[int, Ge(0), Le(2**30), Size("MiB")]
GiB = Annotated[int, Ge(0), Le(2**22), Size("GiB")]
Bytes = Annotated[int, Ge(0), Le(2**60), Size("B")]
LimitMiB = Annotated[int, Ge(-1), Le(2**30), Size("MiB")]
LimitGiB = Annotated[int, Ge(-1), Le(2**30), Size("GiB")]
Limit = Annotated[int, Ge(-1), Le(2**31 - 1)]
Count = Annotated[int, Gt(0), Le(2**31 - 1)]
Memory = Annotated[int, Gt(0), Le(2**30), Size("MiB")]
Vcpus = Annotated[int, Gt(0), Le(2**16)]
Text = Annotated[str, Reads(words, {"type": ["string", "number", "boolean"]})]
Name = Annotated[str, Len(1, 255), Reads(one_line)]
KeystoneName = Annotated[Name, Reads(no_end_spaces)]
File = Annotated[str, ReadsBeside(file_path)]
Source = Annotated[str, ReadsBeside(source)]
Checksum = Annotated[str, Reads(checksum)]
PublicKey = Annotated[str, ReadsBeside(public_key, _PUBLIC_KEY)]
Timestamp = Annotated[str, Reads(_timestamp)]
Address = Annotated[str, Reads(address)]
Cidr = Annotated[str, Reads(cidr)]
Block = Annotated[str, Reads(block)]
Mac = Annotated[str, Reads(mac)]
Port = Annotated[int, Ge(1), Le(65535)]


OLD_BOOLEANS = {"yes": True, "on": True, "y": True, "no": False, "off": False, "n": False}
"""Words that are booleans in YAML 1.1, in any case, and so in Go's yaml.v2; here they are texts, as in YAML 1.2."""
GO_BOOLEANS = dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True)
GO_BOOLEANS |= dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False)
"""The words that Go's strconv.ParseBool reads."""
