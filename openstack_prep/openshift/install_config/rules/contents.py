"""Rules for pull secret, SSH keys and CA certificates; messages never quote their contents.

Source: the OpenShift installer's validation (pkg/validate: ImagePullSecret, SSHPublicKey, CABundle; types/validation:
validateFIPSconfig); sshd(8), "AUTHORIZED_KEYS FILE FORMAT".
"""

from __future__ import annotations

import base64
import contextlib
import ipaddress
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import dropwhile
from typing import Any
from urllib.parse import urlsplit

from openstack_prep.base.errors import Mistake
from openstack_prep.base.fields import GO_BOOLEANS, is_public_key
from openstack_prep.openshift.install_config import releases
from openstack_prep.openshift.install_config.model import Capabilities, FileContents, InstallConfigFields
from openstack_prep.openshift.install_config.rules.names import LONGEST_DOMAIN, SUBDOMAIN

# Rules of the installer for proxies.
#
# Source: the OpenShift installer's validation (types/validation/installconfig.go: validateProxy, validateIPProxy;
# validate/validate.go: NoProxyDomainName).

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
            yield Mistake(f"proxy.{where}", "is not the URL of a proxy", _fix(schemes))
        elif url and release in releases.PROXIES_OUTSIDE and (inside := _network_of(url, cluster)):
            yield Mistake(f"proxy.{where}", f"the proxy is in {inside}", "give a proxy outside the cluster")
    if proxy.exceptions != ("*",):
        for exception in proxy.exceptions:
            if not _is_exception(exception, release):
                what = f"{exception!r} is not an address, a network or a domain"
                yield Mistake("proxy.exceptions", what, "write one such as .example.com, without wildcard or port")


def _fix(schemes: Sequence[str]) -> str:
    return f"write {' or '.join(f'{scheme}://HOST:PORT' for scheme in schemes)}; PORT is at most 65535"


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


# Rules of the installer for publishing, feature sets and capabilities; the tables are in ``releases``.
#
# Source: the OpenShift installer's validation (types/validation/installconfig.go: validateFeatureSet,
# validateCustomFeatureGates, validateCapabilities).


def _publish(cluster: InstallConfigFields, release: int) -> Iterator[Mistake]:
    if cluster.publish == "Internal" and release in releases.ALWAYS_EXTERNAL:
        yield Mistake("publish", "Internal is not supported on this platform", "leave it out, and the floating IPs too")


def _feature_set(cluster: InstallConfigFields, release: int) -> Iterator[Mistake]:
    spans = releases.FEATURE_SETS.items()
    known = [name for name, span in spans if release in span and (name != "OKD" or releases.OKD in cluster.release)]
    if cluster.feature_set and known and cluster.feature_set not in known:
        what = f"{releases.name(release)} has no feature set {cluster.feature_set!r}"
        yield Mistake("feature_set", what, f"write {' or '.join(known)}, or leave it out")


def _feature_gates(cluster: InstallConfigFields, release: int) -> Iterator[Mistake]:
    if cluster.feature_gates and cluster.feature_set != releases.CUSTOM:
        what = f"belongs to feature_set {releases.CUSTOM}, not to {cluster.feature_set or 'none'}"
        yield Mistake("feature_gates", what, f"set feature_set: {releases.CUSTOM}, or leave it out")
    for index, each in enumerate(cluster.feature_gates):
        if each.partition("=")[2] not in GO_BOOLEANS:
            yield Mistake(f"feature_gates[{index}]", f"{each!r} is not NAME=true or NAME=false", "write OSStreams=true")


def _gates(cluster: InstallConfigFields, release: int) -> Iterator[Mistake]:
    """Yield values that require a feature gate of a release that has the field without previews."""
    gate, stream = releases.GATES["osImageStream"], cluster.os_image_stream
    known = releases.streams(cluster.release)
    if stream is not None and stream not in known:
        other = "OpenShift" if releases.OKD in cluster.release else "OKD, such as 5.0.0-okd-scos.0"
        what = f"the installer of {cluster.release} has no stream {stream!r}"
        yield Mistake("os_image_stream", what, f"write {' or '.join(known)}, or name a release of {other}")
    if release not in gate.checked or stream in (None, releases.default_stream(cluster.release)):
        return
    if not releases.is_enabled(gate, release, cluster.feature_set, cluster.feature_gates):
        fix = f"add {gate.name}=true to feature_gates, or leave out one of os_image_stream and feature_set"
        yield Mistake("os_image_stream", f"{stream!r} requires the feature gate {gate.name}", fix)


def capabilities(
    cluster: InstallConfigFields, release: int, mandatory: Mapping[str, int] = releases.MANDATORY
) -> Iterator[Mistake]:
    """Yield capabilities that the release does not have, or that the cluster lacks; ``mandatory``: by first release."""
    chosen = cluster.capabilities
    known = [name for name, since in releases.CAPABILITIES.items() if since <= release]
    if not known or chosen is None or not (chosen.baseline or chosen.additional):
        return
    for name in chosen.additional:
        if name not in known:
            what = f"{releases.name(release)} has no capability {name!r}"
            yield Mistake("capabilities.additional", what, f"choose from {', '.join(known)}")
    if chosen.baseline is None:
        yield Mistake("capabilities.baseline", "is missing; additional requires it", "write None or vCurrent")
        return
    last = _last_set(chosen.baseline, release)
    if last is None:
        what = f"{releases.name(release)} has no capability set {chosen.baseline!r}"
        newest = min(release, releases.LAST_SET)
        yield Mistake("capabilities.baseline", what, f"write None, vCurrent or v4.11 to v4.{newest}")
        return
    yield from _missing(chosen, _enabled(chosen, last, release), release, mandatory)


def _last_set(baseline: str, release: int) -> int | None:
    """Return the release of a set, 0 for None; None if this release has no such set."""
    if baseline in ("None", "vCurrent"):
        return 0 if baseline == "None" else release
    found = re.fullmatch(r"v4\.(\d+)", baseline)
    number = int(found[1]) if found else 0
    return number if 11 <= number <= min(release, releases.LAST_SET) else None


def _enabled(chosen: Capabilities, last: int, release: int) -> set[str]:
    """Return the capabilities of a set, and the additional ones."""
    of_set = {name for name, since in releases.CAPABILITIES.items() if since <= last}
    if last:
        of_set |= {name for name in releases.IN_ALL_SETS if releases.CAPABILITIES[name] <= release}
    return of_set | set(chosen.additional)


def _missing(chosen: Capabilities, enabled: set[str], release: int, mandatory: Mapping[str, int]) -> Iterator[Mistake]:
    """Yield the capabilities that a cluster on its platform, or another capability, needs."""
    minimal = chosen.baseline == "None"
    needed = {name: "a cluster on this platform" for name, since in mandatory.items() if since <= release}
    if "marketplace" in enabled and release in (releases.MARKETPLACE if minimal else releases.MARKETPLACE_OF_SETS):
        needed[releases.MARKETPLACE_NEEDS] = "marketplace"
    if minimal and "baremetal" in enabled and release in releases.BAREMETAL_NEEDS_MACHINES:
        needed["MachineAPI"] = "baremetal"
    for name, by in needed.items():
        if name not in enabled:
            what = f"{name} is missing from {chosen.baseline}; {by} requires it"
            yield Mistake("capabilities.additional", what, f"add {name}")


FEATURE_RULES_WITHOUT_CLOUD = (_publish, _feature_set, _feature_gates, _gates)
FEATURE_RULES = (*FEATURE_RULES_WITHOUT_CLOUD, capabilities)


NO_LOGIN = '{"auths": {"fake": {"auth": "aWQ6cGFzcwo="}}}'
"""A pull secret without a real login, because the installer requires one."""
_BLOCK = re.compile(
    r"^-----BEGIN ([^\n-]+)-----[ \t\r]*\n(.*?)^-----END \1-----[ \t\r]*(?:\n|\Z)", re.DOTALL | re.MULTILINE
)
_OPTIONS = re.compile(r'^(?:[^ \t"\\]|\\.|"(?:[^"\\]|\\.)*")+[ \t]+')  # of a key; blanks are in quotes
_FIPS_KEY = re.compile(r"ecdsa-sha2-nistp\d{3}|ssh-rsa")


def content_mistakes(cluster: InstallConfigFields, contents: FileContents) -> Iterator[Mistake]:
    """Yield the mistakes of the file contents in an install-config."""
    release = releases.minor(cluster.release)
    if contents.pull_secret is None:
        yield Mistake("pull_secret", "is missing", f"give one; for registries without login, {NO_LOGIN}")
    else:
        yield from _pull_secret(contents.pull_secret.reveal())
    if contents.ssh_key is not None:
        yield from _ssh_key(contents.ssh_key, release, comments=bool(cluster.fips))
        if cluster.fips and release in releases.FIPS_KEYS:
            yield from _fips_key(contents.ssh_key)
    if contents.additional_trust_bundle is not None:
        yield from _bundle(contents.additional_trust_bundle)


# --- CA certificates ----------------------------------------------------------------------


def _bundle(text: str) -> Iterator[Mistake]:
    """Yield what keeps the installer from reading certificates, and nothing but certificates."""
    where, blocks = "additional_trust_bundle", list(_BLOCK.finditer(text))
    if "PRIVATE KEY" in text:
        yield Mistake(where, "contains a private key", "give the certificates alone")
    elif not blocks:
        yield Mistake(where, "contains no certificate", "give PEM: -----BEGIN CERTIFICATE----- ...")
    else:
        wrong = [str(number) for number, block in enumerate(blocks, 1) if not _is_certificate(block[2])]
        if wrong:
            what = f"block {', '.join(wrong)} of {len(blocks)} is not a certificate"
            yield Mistake(where, what, "give certificates alone, each in PEM")
        if blocks[-1].end() < len(text):
            what = "text or an empty line follows the last certificate"
            yield Mistake(where, what, "end the file after -----END CERTIFICATE-----")


def _is_certificate(body: str) -> bool:
    from cryptography.x509 import load_der_x509_certificate  # few files have a bundle

    lines = dropwhile(lambda line: ":" in line, body.splitlines())  # headers of PEM
    try:
        load_der_x509_certificate(base64.b64decode("".join("".join(lines).split()), validate=True))
    except ValueError:
        return False
    return True


# --- pull secret --------------------------------------------------------------------------


def _no_number(word: str) -> None:
    """Refuse NaN and Infinity, which are no JSON."""
    raise ValueError(word)


def _auths(text: str) -> dict[str, Any] | None:
    """Return the logins by registry as Go reads them: keys in any case, and repeated auths are merged.

    Objects inside are tuples of names and values.  None if it is not JSON with auths.
    """
    try:
        data = json.loads(text, parse_constant=_no_number, object_pairs_hook=tuple)
    except (ValueError, RecursionError):
        return None
    found: dict[str, Any] | None = None
    for name, value in data if isinstance(data, tuple) else ():
        if name.lower() != "auths":
            continue
        if value is not None and not isinstance(value, tuple):
            return None
        found = None if value is None else (found or {}) | dict(value)
    return found


def _pull_secret(text: str) -> Iterator[Mistake]:
    auths = _auths(text)
    if auths is None:
        fix = "use the one from the console of your vendor"
        yield Mistake("pull_secret", "is not JSON with auths", fix)
    elif not auths:
        fix = f"use the one from the console of your vendor; without registries, {NO_LOGIN}"
        yield Mistake("pull_secret", "has an empty auths", fix)
    else:
        fix = "create it by podman login --authfile FILE, or leave that registry out"
        for registry, login in auths.items():
            if not isinstance(login, tuple) or not dict(login).keys() & {"auth", "credsStore"}:
                yield Mistake("pull_secret", f"has neither auth nor credsStore for {registry!r}", fix)


# --- SSH keys -----------------------------------------------------------------------------


def _ssh_key(text: str, release: int, *, comments: bool) -> Iterator[Mistake]:
    """Yield the lines that are no keys; with FIPS the installer reads only the first key, and allows comments."""
    fix = "give the content of a .pub file, one key per line: ssh-ed25519 AAAAC3... me@here"
    if "PRIVATE KEY" in text:
        yield Mistake("ssh_key", "is a private key", fix)
        return
    lines = _lines(text)
    lost = [str(number) for number, line in enumerate(text.splitlines(), 1) if line.strip().startswith("#")]
    if lost and not comments and release in releases.EVERY_SSH_KEY:
        what = f"a comment in line {', '.join(lost)}, which {releases.name(release)} does not accept"
        yield Mistake("ssh_key", what, "leave only the keys")
    blank = [str(number) for number, line in enumerate(text.split("\n"), 1) if line and not line.strip()]
    if blank and not comments and release in releases.EVERY_SSH_KEY:
        what = f"only blanks in line {', '.join(blank)}, which {releases.name(release)} does not accept"
        yield Mistake("ssh_key", what, "leave only the keys")
    wrong = [str(number) for number, line in lines.items() if _kind(line) is None]
    if wrong:
        yield Mistake("ssh_key", f"not an OpenSSH public key in line {', '.join(wrong)}", fix)
    elif not lines:
        yield Mistake("ssh_key", "contains no key", fix)


def _kind(line: str) -> str | None:
    """Return the kind of a key, which stands before its data and in them; None if the line is no key.

    Both are the first words, or those behind options.  Nothing is missing at the end of the data if their fields, each
    with its length before it, fill them.
    """
    for words in (line.split(), _OPTIONS.sub("", line).split()):
        with contextlib.suppress(ValueError):
            data, fields, end = base64.b64decode("".join(words[1:2]), validate=True), [], 0
            while end < len(data):
                begin, end = end + 4, end + 4 + int.from_bytes(data[end : end + 4], "big")
                fields.append(data[begin:end])
            if end == len(data) and len(fields) > 1 and fields[0].decode("ascii") == words[0]:
                return words[0]
    return None


def _fips_key(text: str) -> Iterator[Mistake]:
    """Yield a first key of a kind that FIPS excludes; the installer reads only the first."""
    kind = next(filter(None, map(_kind, _lines(text).values())), None)
    if kind is not None and not _FIPS_KEY.fullmatch(kind):
        yield Mistake("ssh_key", "FIPS does not allow a key of this kind", "give one of ssh-keygen -t ecdsa or -t rsa")


def are_public_keys(text: str) -> bool:
    """Whether a text consists of SSH public keys and comments, and may be shown."""
    return all(is_public_key(line) for line in _lines(text).values())


def _lines(text: str) -> dict[int, str]:
    """Return the lines that are neither empty nor comments, by number."""
    lines = ((number, line.strip()) for number, line in enumerate(text.splitlines(), 1))
    return {number: line for number, line in lines if line and not line.startswith("#")}


# --- rules of the installer for mirrors of image repositories ---
#
# Source: the OpenShift installer's validation (types/validation/installconfig.go: validateNamedRepository), which
# takes names as containers/image docker/reference does: in full, without the parts that Docker adds.


_DOMAIN_PART = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*(?::[0-9]+)?"
_PART = r"[a-z0-9]+(?:(?:[._]|__|[-]*)[a-z0-9]+)*"
_REPOSITORY = re.compile(rf"(?P<domain>{_DOMAIN})/(?P<path>{_PART}(?:/{_PART})*)")
_ID = re.compile("[a-f0-9]{64}")  # of an image, which no name may look like
_LONGEST = 255
DOCKER, ALIAS = "docker.io", "index.docker.io"


def _mirrors(cluster: InstallConfigFields, release: int) -> Iterator[Mistake]:
    for index, mirror in enumerate(cluster.image_mirrors):
        for name in (mirror.source, *mirror.mirrors):
            if not (_is_repository(name) or (_is_registry(name) and release in releases.REGISTRIES_ALONE)):
                fix = "write HOST/PATH in lowercase letters, without scheme, tag, digest, wildcard and trailing slash"
                yield Mistake(f"image_mirrors[{index}]", f"{name!r} is not a repository", fix)


def _is_repository(name: str) -> bool:
    """Whether a name is a repository in full: quay.io/okd/release, and neither okd/release nor quay.io/okd:tag."""
    found = _REPOSITORY.fullmatch(name)
    if not found or len(name) > _LONGEST:
        return False
    domain, path = found["domain"], found["path"]
    is_host = "." in domain or ":" in domain or domain == "localhost"
    return is_host and domain != ALIAS and (domain != DOCKER or "/" in path)


def _is_registry(name: str) -> bool:
    """Whether a name is a host, with or without its port."""
    return bool(re.fullmatch(rf"{SUBDOMAIN}(:[0-9]+)?", name)) and not _ID.fullmatch(name)


REGISTRY_RULES = (_mirrors,)
