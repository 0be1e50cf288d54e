"""Rules of the installer for proxies.

Source: the OpenShift installer's validation (types/validation/installconfig.go: validateProxy, validateIPProxy;
validate/validate.go: NoProxyDomainName).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from openstack_prep.base.errors import Mistake
from openstack_prep.openshift.install_config import releases
from openstack_prep.openshift.install_config.model import InstallConfigFields
from openstack_prep.openshift.install_config.rules.names import LONGEST_DOMAIN, SUBDOMAIN

_CONTROL = re.compile(r"^[ \x80-\uffff]|[\x00-\x1f\x7f]")
_USER = re.compile(r"(?:[A-Za-z0-9\-._:~!$&'()*+,;=@]|%[0-9A-Fa-f]{2})*")  # net/url validUserinfo
_NOT_IN_HOST = re.compile(r"[ \\^`{|}%]")


def _proxy(cluster: InstallConfigFields, release: int) -> Iterator[Mistake]:
    proxy = cluster.proxy
    if proxy is None:
        return
    if not (proxy.http or proxy.https):
        yield Mistake("proxy", "has no proxy", "give http or https")
    for where, url, schemes in (("http", proxy.http, ["http"]), ("https", proxy.https, ["http", "https"])):
        if url and not _is_url_of_host(url, schemes):  # it may hold a password
            yield Mistake(f"proxy.{where}", "is not the URL of a proxy", f"begin with {' or '.join(schemes)}://HOST")
        elif url and release in releases.PROXIES_OUTSIDE and (inside := _network_of(url, cluster)):
            yield Mistake(f"proxy.{where}", f"the proxy is in {inside}", "give a proxy outside the cluster")
    if proxy.exceptions != ("*",):
        for each in proxy.exceptions:
            if not _is_exception(each, release):
                what = f"{each!r} is not an address, a network or a domain"
                yield Mistake("proxy.exceptions", what, "write one such as .example.com, without wildcard or port")


def _is_url_of_host(url: str, schemes: Sequence[str]) -> bool:
    """Whether a text is the URL of a host that Go parses, too: without blanks, and with escapes of two digits."""
    try:
        parts = urlsplit(url)
        authority = re.split("[/?]", url.partition("//")[2], maxsplit=1)[0]  # Go takes no # for the end of the host
        valid = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0 and "#" not in authority
    except ValueError:  # invalid address in brackets, or invalid port
        return False
    user, _, host = parts.netloc.rpartition("@")
    return valid and not _CONTROL.search(url) and bool(_USER.fullmatch(user)) and not _NOT_IN_HOST.search(host)


def _network_of(url: str, cluster: InstallConfigFields) -> str:
    """Return the network inside the cluster that contains the address of a proxy; empty if it has none."""
    try:
        address = ipaddress.ip_address(urlsplit(url).hostname or "")
    except ValueError:  # a name
        return ""
    inner = (*cluster.cluster_networks, *cluster.service_networks, *filter(None, [cluster.ovn_join_subnet]))
    return next((each for each in inner if address in ipaddress.ip_network(each)), "")


def _is_exception(text: str, release: int) -> bool:
    if "%" in text or re.search(r"/.*\D", text):  # an interface, or a mask that is not a length: Go reads neither
        return False
    try:
        address = ipaddress.ip_interface(text)
        return address.version == 4 or "/" in text or release in releases.IPV6_WITHOUT_PROXY
    except ValueError:
        name = text.removeprefix(".").removesuffix(".")
        return bool(re.fullmatch(SUBDOMAIN, name)) and len(name) <= LONGEST_DOMAIN


PROXY_RULES = (_proxy,)
