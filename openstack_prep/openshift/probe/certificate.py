"""Names and dates of a certificate that a peer presented.

Source: RFC 6125, section 6.4 (a wildcard stands for one whole label, the first one); Go ignores the common name.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import datetime

from openstack_prep.base.fields import is_address


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """What decides whether a client accepts a certificate, besides the authority that signed it."""

    names: tuple[str, ...]
    """Its alternative names: host names, which may begin with a wildcard, and addresses."""
    since: datetime
    until: datetime

    def is_for(self, host: str) -> bool:
        """Whether one of the names stands for a host."""
        if is_address(host):
            wanted = ipaddress.ip_address(host)
            return any(is_address(each) and ipaddress.ip_address(each) == wanted for each in self.names)
        _, _, parent = host.lower().partition(".")
        return any(each.lower() in (host.lower(), f"*.{parent}") for each in self.names)


def read_certificate(der: bytes) -> Certificate:
    """Return what a certificate says; raises ValueError."""
    from cryptography import x509

    found = x509.load_der_x509_certificate(der)
    try:
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        names = x509.SubjectAlternativeName([])
    hosts = names.get_values_for_type(x509.DNSName)
    addresses = map(str, names.get_values_for_type(x509.IPAddress))
    return Certificate(names=(*hosts, *addresses), since=found.not_valid_before_utc, until=found.not_valid_after_utc)
