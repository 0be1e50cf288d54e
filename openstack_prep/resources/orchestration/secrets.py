"""The secrets of a stack in a private image, in place of Heat, which shows its readers what it gives to servers.

A template asks for it by a parameter with the tag ``openstack-prep-secrets-image``, which is the name of an image, and
makes a volume per server of it. Heat gets a placeholder for each secret that reaches a resource with this parameter;
the image maps placeholders to values. Only members of the project may read an image or a volume. Source: Glance 33.0.0,
policies/image.py (download_image); Cinder 28.0.0, policies/volume_actions.py; Heat Orchestration Template
specification, "Parameters section" (tags, since 2018-03-02).
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import IO, ClassVar, Literal

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Loss, Mistake
from openstack_prep.base.raw import Raw, Values
from openstack_prep.base.secret import Secret
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Condition, Context, Key, Observed, Resource
from openstack_prep.core.permission import lost_secret
from openstack_prep.resources.heat.flow import NOT_EMPTY, Flow
from openstack_prep.resources.heat.package import Package
from openstack_prep.resources.image.glance import ImageRecord
from openstack_prep.resources.image.image import Family, Image

HEAD = b"openstack-prep secrets 1\n"
BLOCK = 1 << 16
"""The content is a multiple of it, so that its size tells little."""

GENERATED = Condition("(of generated secrets)")
"""The checksum of content that is not known yet."""
Form = Literal["string", "json"]
"""Type of a hidden parameter, in Heat's words."""


def placeholder(parameter: str, form: str) -> str:
    """Return what Heat gets in the place of a secret: letters and digits, or a mapping with one such key."""
    word = "PlaceholderOfSecret" + hashlib.sha256(parameter.encode()).hexdigest()[:16]
    return json.dumps({word: ""}) if form == "json" else word


def carried_by(package: Package, names: Iterable[str], given: Raw) -> dict[str, tuple[str, ...]]:
    """Return the secrets that reach servers with an image of secrets, by the parameter of the image.

    The ``given`` values of parameters decide who gets what; a secret that nobody gets by them goes where it might.
    """
    fitting = {name for name in names if package.parameters[name]["type"] in ("string", "json")}
    decided = _reaching(package, Flow(package.template, {**given, **dict.fromkeys(names, NOT_EMPTY)}))
    unused = fitting.difference(*decided.values())
    possible = _reaching(package, Flow(package.template))
    found = {image: sorted((decided[image] & fitting) | (possible[image] & unused)) for image in package.secret_images}
    return {image: tuple(reaching) for image, reaching in found.items() if reaching}


def _reaching(package: Package, flow: Flow) -> dict[str, frozenset[str]]:
    """Return the parameters that reach a resource with an image of secrets, by the parameter of the image."""
    into = [flow.into(resource) for resource in flow.resources]
    return {
        image: frozenset().union(*(reaching for reaching in into if image in reaching))
        for image in package.secret_images
    }


@functools.lru_cache(maxsize=64)
def _salted(text: bytes, purpose: bytes) -> bytes:
    """Return secrets after a salt that takes time to compute.

    Glance shows readers a checksum of the content; whoever guesses secrets by it needs this time per guess, for all
    secrets of the image at once. The salt is not random: equal secrets are an equal image, which is not replaced.
    """
    salt = hashlib.scrypt(text, salt=purpose, n=2**14, r=8, p=1).hex().encode()
    content = HEAD + b'{"salt": "' + salt + b'", "secrets": ' + text + b"}"
    return content + bytes(BLOCK - len(content) % BLOCK)  # at least one null byte, at which a node stops reading


@dataclass(frozen=True, kw_only=True)
class SecretsImage(Image):
    """The image with secrets of one stack, for the servers that ask for it by one parameter of its template."""

    implied: ClassVar[frozenset[str]] = Image.implied | {"checksum"}

    parameter: str
    """Of the template, that names the image."""
    secrets: Mapping[str, tuple[Secret, Form]] = field(repr=False)
    """By name of the hidden parameter."""
    writers: tuple[Key, ...] = ()
    """What writes files that the secrets are read from."""

    def resolve(self, context: Context) -> Sequence[Resource]:
        """Return it as it is: the stack has resolved it."""
        return (self,)

    @property
    def ready(self) -> bool:
        return all(secret.ready for secret, _ in self.secrets.values())

    def with_checksum(self) -> SecretsImage:
        """Return the image with the checksum of its content, if all secrets exist."""
        return replace(self, checksum=f"sha256:{hashlib.sha256(self.content()).hexdigest()}") if self.ready else self

    def content(self) -> bytes:
        """Return placeholders with their values, as a node writes them into JSON."""
        values = {}
        for name, (secret, form) in sorted(self.secrets.items()):
            value = secret.reveal()
            written = json.dumps(json.loads(value)) if form == "json" else json.dumps(value)[1:-1]
            values[placeholder(name, form)] = written
        return _salted(json.dumps(values).encode(), "/".join((*self.scope, self.name)).encode())

    def desired(self) -> Values:
        own = ("parameter", "secrets", "writers")
        values = {name: value for name, value in super().desired().items() if name not in own}
        if any(secret.is_to_generate for secret, _ in self.secrets.values()):  # so an existing image has other secrets
            values["checksum"] = GENERATED
        return values

    def list_losses(self, observed: Observed) -> Iterable[Loss]:
        """Yield the secrets that would be generated, whether or not their stack can be seen: servers have the image."""
        for name, (secret, _) in self.secrets.items() if observed.ours else ():
            if secret.is_to_generate:
                yield lost_secret(self.key, name, secret)

    def needs(self) -> Iterable[Key]:
        return (*super().needs(), *self.writers)

    def outlives(self) -> Iterable[Key]:
        return (*super().outlives(), *self.writers)  # the image holds a copy of what they write

    def find_present(self, run: CloudRun) -> str | None:
        """Return the id of the existing image, unless its content differs, or will differ, from these secrets.

        Secrets that nobody has fetched are not compared: only a plan to apply fetches them.
        """
        fetched = all(secret.fetched for secret, _ in self.secrets.values())
        wanted = self.with_checksum() if fetched else self
        seen = run.look(self) if self.ready else None
        return seen.id if seen and wanted._is_good(seen.record_as(Family).image) else None

    def check(self, run: CloudRun, observed: Observed | None) -> Iterator[Mistake]:
        if observed is not None and not observed.ours:
            yield self.mistake(
                f"exists and is {observed.owner}, so it cannot hold the secrets of the stack",
                "rename that image, or the stack",
                Code.PLAN_FOREIGN,
            )

    def _leave_one(self, run: CloudRun, family: Sequence[ImageRecord]) -> ImageRecord:
        content = self.content()
        with _unnamed() as file:
            file.write(content)
            file.flush()
            filled = replace(self.with_checksum(), source=f"/dev/fd/{file.fileno()}")
            return super(SecretsImage, filled)._leave_one(run, family)


def _unnamed() -> IO[bytes]:
    """Return a file without a name, in memory where the system has such files."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("secrets"), "w+b")
    return tempfile.TemporaryFile()
