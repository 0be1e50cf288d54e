"""``openstack-prep check`` on a real project: a clean one passes, and each thing spoiled is found and mended."""

from __future__ import annotations

import json
import secrets
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml

from openstack_prep.base.secret import Secret
from openstack_prep.openshift.check.preflight import preflight
from openstack_prep.openshift.install_config import (
    FileContents,
    InstallConfigFields,
    MachinePool,
    Machines,
    RootVolume,
    dump,
)
from openstack_prep.openshift.install_config.document import document
from openstack_prep.openshift.names.hosts import ClusterNames, hosts_lines
from tests.devcloud.faults import Fault
from tests.devcloud.pytest_devcloud import Devcloud
from tests.devcloud.qcow2 import qcow2
from tests.devcloud.tenant import Tenant
from tests.functional.client import openstack
from tests.functional.conftest import Prep

CREDENTIAL = "with-application-credential"
PLATFORM = "platform.openstack"
CONTENTS = FileContents(pull_secret=Secret('{"auths":{"quay.io":{"auth":"Zm9vOmJhcg=="}}}'))
NEED = {
    "compute": {"instances": 6, "cores": 20, "ram": 81920, "server_groups": 2, "server_group_members": 3},
    "network": {
        "port": 10,
        "network": 1,
        "subnet": 1,
        "router": 1,
        "security_group": 3,  # with the one called default
        "security_group_rule": 60,
        "floatingip": 3,
    },
    "volume": {"volumes": 4, "gigabytes": 400, "per_volume_gigabytes": 100},
}
"""Of three masters with root volumes, two workers and the bootstrap machine, in words of the services."""


@dataclass
class Site:
    """A project that a cluster could be installed in, and the command beside its install-config.yaml."""

    devcloud: Devcloud
    tenant: Tenant
    prep: Prep
    made: list[Any] = field(default_factory=list)
    limited: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.suffix = secrets.token_hex(3)
        self.admin: Any = self.devcloud.admin
        self.connection: Any = self.tenant.connect()
        self.entry(CREDENTIAL, self.credential())
        external = self.connection.network.find_network("external", ignore_missing=False)
        api, ingress = (self.connection.network.create_ip(floating_network_id=external.id).name for _ in range(2))
        names = ClusterNames(cluster_name="dev", base_domain="example.com", api=api, ingress=ingress)
        (self.prep.folder / "hosts").write_text("\n".join(hosts_lines(names)))
        self.image("rhcos")
        self.restore()
        self.cluster = InstallConfigFields(
            release="4.18",
            cluster_name="dev",
            base_domain="example.com",
            cloud=CREDENTIAL,
            external_network="external",
            api_floating_ip=api,
            ingress_floating_ip=ingress,
            external_dns=("192.0.2.53",),
            cluster_os_image="rhcos",
            control_plane=MachinePool(
                flavor=self.flavor("master", 16384, 4, 0), root_volume=RootVolume(size=100, types=(self.volume_type(),))
            ),
            compute=MachinePool(replicas=2, flavor=self.flavor("worker", 8192, 2, 100)),
        )

    # --- what is there ----------------------------------------------------------------------

    def flavor(self, name: str, ram: int, vcpus: int, disk: int) -> str:
        made = self.admin.compute.create_flavor(name=f"{name}-{self.suffix}", ram=ram, vcpus=vcpus, disk=disk)
        self.made.append(lambda: self.admin.compute.delete_flavor(made))
        return str(made.name)

    def volume_type(self) -> str:
        made = self.admin.block_storage.create_type(name=f"fast-{self.suffix}")
        self.made.append(lambda: self.admin.block_storage.delete_type(made))
        return str(made.name)

    def image(self, name: str) -> Any:
        path = self.prep.folder / "disk.qcow2"
        path.write_bytes(qcow2(1))
        return self.connection.create_image(name, filename=str(path), disk_format="qcow2", wait=True)

    def credential(self, **options: Any) -> dict[str, Any]:
        """Return an entry of clouds.yaml by an application credential."""
        name = f"c{secrets.token_hex(3)}"
        made = self.connection.identity.create_application_credential(self.tenant.user_id, name, **options)
        self.made.append(lambda: self.connection.identity.delete_application_credential(self.tenant.user_id, made))
        auth = {"auth_url": self.devcloud.auth_url, "application_credential_id": made.id}
        return {"auth_type": "v3applicationcredential", "auth": auth | {"application_credential_secret": made.secret}}

    def entry(self, name: str, settings: dict[str, Any]) -> None:
        path = self.tenant.clouds_file
        data = yaml.safe_load(path.read_text())
        data["clouds"][name] = settings
        path.write_text(yaml.safe_dump(data))

    def limit(self, service: str, limits: dict[str, int]) -> None:
        """Set quotas of the project."""
        self.limited.add(service)
        api, path, member = self.quotas(service)
        api.put(path, json={member: limits})

    def quotas(self, service: str) -> tuple[Any, str, str]:
        """Return the API that keeps a service's quotas, the path of the project's, and what they are called."""
        if service == "network":
            return self.admin.network, f"/quotas/{self.tenant.project_id}", "quota"
        api = self.admin.compute if service == "compute" else self.admin.block_storage
        return api, f"/os-quota-sets/{self.tenant.project_id}", "quota_set"

    def restore(self) -> None:
        """Give the project the stock quotas again, but for RAM, of which they are too small."""
        for service in self.limited:
            api, path, _ = self.quotas(service)
            api.delete(path)
        self.limited.clear()
        self.limit("compute", {"ram": NEED["compute"]["ram"]})

    # --- the command ------------------------------------------------------------------------

    def check(self, *words: str, code: int = 0, **changes: Any) -> list[dict[str, str]]:
        """Write an install-config.yaml, check it, and return the findings: by the command if there are words for it."""
        config = replace(self.cluster, **changes)
        path, hosts = (self.prep.folder / name for name in ("install-config.yaml", "hosts"))
        path.write_text(dump(document(config, CONTENTS)))
        if words:
            words = ("check", "--release", config.release, "--hosts", "hosts", "--format", "json", *words)
            data = json.loads(self.prep.run(*words, code=code).stdout)
        else:
            verdict = preflight(path, config.release, hosts=hosts, clouds_file=self.tenant.clouds_file)
            data = verdict.data()
            assert bool(verdict.errors) == bool(code), verdict
        found: list[dict[str, str]] = data["findings"]
        return found

    def told(self, *words: str, code: int = 0, **changes: Any) -> list[str]:
        """Return level, place and matter of what it finds, without ids and suffixes."""
        found = self.check(*words, code=code, **changes)
        return [f"{each['status']} {each['where']}: {each['what']}".replace(f"-{self.suffix}", "") for each in found]

    def carry_out(self, fix: str, cloud: str = "devcloud-admin") -> str:
        """Run the commands of a fix, by default as an administrator; return the output of the last one."""
        clouds_file = self.devcloud.clouds_file if cloud == "devcloud-admin" else self.tenant.clouds_file
        environment = {"OS_CLIENT_CONFIG_FILE": str(clouds_file), "OS_CLOUD": cloud}
        for command in fix.partition("  # ")[0].split(" && "):
            client, *words = shlex.split(command)
            assert client == "openstack"
            out = openstack(words, environment)
        return out

    def new_entry(self, name: str, fix: str) -> None:
        """Create an application credential as a fix says, and write an entry with what the fix says belongs there."""
        command, _, then = fix.partition("  # ")
        printed = json.loads(self.carry_out(f"{command} -f json", self.tenant.cloud))
        answer = {key.lower(): value for key, value in printed.items()}  # openstackclient 10.5 prints "ID"
        self.made.append(
            lambda: self.connection.identity.delete_application_credential(self.tenant.user_id, answer["id"])
        )
        given = {"auth_url": self.devcloud.auth_url, "application_credential_id": answer["id"]}
        given |= {"application_credential_secret": answer["secret"]}
        assert all(key in then for key in given)
        assert f"auth_url: {self.devcloud.auth_url}, " in then
        self.entry(name, {"auth_type": "v3applicationcredential", "auth": given})

    def mend(self, *findings: dict[str, str]) -> None:
        """Do what findings on quotas say an administrator shall, all by one command."""
        options, project = list[str](), ""
        for each in findings:
            command, quota, verb, *more, project = shlex.split(each["fix"], comments=True)
            assert (command, quota, verb) == ("openstack", "quota", "set")
            options += more
        environment = {"OS_CLIENT_CONFIG_FILE": str(self.devcloud.clouds_file), "OS_CLOUD": "devcloud-admin"}
        openstack(["quota", "set", *options, project], environment)


@pytest.fixture(scope="module")
def _site(devcloud: Devcloud, module_tenant: Tenant, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(devcloud, module_tenant, Prep(tmp_path_factory.mktemp("site")))
    yield made
    for undo in made.made:
        undo()


@pytest.fixture
def site(_site: Site) -> Iterator[Site]:
    """One for all tests here: what one of them spoils is as before after it."""
    _site.prep.environment = {"OS_CLIENT_CONFIG_FILE": str(_site.tenant.clouds_file), "OS_CLOUD": ""}
    yield _site
    _site.restore()


# --- nothing wrong ------------------------------------------------------------------------


def test_a_clean_project_passes_and_nothing_is_changed(site: Site) -> None:
    site.check()
    mark = site.devcloud.mark()
    said = site.prep.run("check", "--release", "4.18", "--hosts", "hosts").stdout
    assert said == f"install-config.yaml for 4.18 in cloud '{CREDENTIAL}': no problems found\n"
    written = {each.method for each in site.devcloud.requests_since(mark) if not each.path.endswith("/auth/tokens")}
    assert written <= {"GET", "HEAD"}


def test_the_installer_tells_the_release_and_the_copy_stands_for_what_it_ate(site: Site) -> None:
    site.check(release="4.11", code=1)
    config = site.prep.folder / "install-config.yaml"
    config.rename(config.with_name("install-config.yaml.kept"))
    script = site.prep.folder / "openshift-install"  # says its version, and is no installer otherwise
    script.write_text('#!/bin/sh\n[ "$1" = version ] && echo "$0 4.11.7" && exit 0\nexit 1\n')
    script.chmod(0o755)
    found = json.loads(site.prep.run("check", "--hosts", "hosts", "--format", "json", code=1).stdout)
    metadata = site.prep.folder / "metadata.json"
    metadata.write_text('{"infraID": "dev-x7k2p"}')
    alone = site.prep.run("check", code=1).stdout.splitlines()
    metadata.unlink()
    script.unlink()
    assert alone[0].startswith("error: metadata.json: cluster dev-x7k2p was installed from this folder")
    assert alone[-1].endswith(": 1 error")
    assert (found["install_config"], found["release"]) == ("install-config.yaml.kept", "4.11")
    assert f"clouds.yaml: {CREDENTIAL}" in [each["where"] for each in found["findings"] if each["status"] == "error"]


def test_what_fails_for_a_moment_is_read_again_and_what_stays_away_is_told(site: Site) -> None:
    passing = [
        Fault("keystone", method="POST", path_regex="/auth/tokens$", status=503),
        Fault("nova", path_regex="/flavors/detail", status=503),
        Fault("neutron", path_regex="/quotas/", drop_answer=True),
        Fault("cinder", path_regex="/os-quota-sets/", status=429),
        Fault("glance", path_regex="/images", drop_answer=True),
    ]
    with site.devcloud.faults(*passing):
        assert site.told() == []
    with site.devcloud.faults(Fault("nova", path_regex="/flavors/detail", status=500, times=99)):
        assert {each.partition(":")[0] for each in site.told(code=1)} == {"error flavors", "error quota"}


# --- quotas -------------------------------------------------------------------------------


def test_quotas_that_are_just_enough_pass_and_one_less_of_each_is_found_and_mended(site: Site) -> None:
    for service, limits in NEED.items():
        site.limit(service, limits)
    assert site.told() == []
    for service, limits in NEED.items():
        site.limit(service, {name: limit - 1 for name, limit in limits.items()})
    found = site.check(code=1)
    assert {each["where"]: each["what"] for each in found} == {
        "quota.instances": "6 are needed (3 control plane + 2 compute + 1 bootstrap), 5 of 5 are free",
        "quota.cores": "20 are needed (3 x 4 + 2 x 2 + 1 x 4), 19 of 19 are free",
        "quota.ram": "81920 MiB are needed (3 x 16384 + 2 x 8192 + 1 x 16384), 81919 of 81919 MiB are free",
        "quota.server_groups": "2 are needed (masters' + 1 of workers), 1 of 1 are free",
        "quota.server_group_members": "3 are needed (in the largest group), 2 of 2 are free",
        "quota.ports": "10 are needed (6 of machines + API + ingress + router + DHCP), 9 of 9 are free",
        "quota.networks": "1 are needed (the machines' own), 0 of 0 are free",
        "quota.subnets": "1 are needed (the machines' own), 0 of 0 are free",
        "quota.routers": "1 are needed (the machines' own), 0 of 0 are free",
        "quota.security_groups": "2 are needed (masters' and workers'), 1 of 2 are free",
        "quota.security_group_rules": "56 are needed (the installer asks for them, and creates 42), 55 of 59 are free",
        "quota.floating_ips": "1 are needed (temporarily for bootstrap), 0 of 2 are free",
        "quota.volumes": "4 are needed (4 of machines), 3 of 3 are free",
        "quota.gigabytes": "400 GiB are needed (4 of machines), 399 of 399 GiB are free",
        "quota.per_volume_gigabytes": "100 GiB are needed (the largest), 99 of 99 GiB are free",
    }
    site.mend(*found)
    assert site.told() == []
    (kind,) = site.cluster.control_plane.root_volume.types  # type: ignore[union-attr]
    site.limit("volume", {f"volumes_{kind}": 3, f"gigabytes_{kind}": 399})
    found = site.check(code=1)
    assert [each["where"] for each in found] == [f"quota.volumes_{kind}", f"quota.gigabytes_{kind}"]
    site.mend(*found)
    assert site.told() == []


# --- flavors, images, zones, volume types -------------------------------------------------


def test_names_that_are_not_there_are_all_told_at_once(site: Site) -> None:
    found = site.told(
        code=1,
        cluster_os_image="nobodys",
        machines=Machines(flavor="nobodys", zones=("az9",)),
        control_plane=MachinePool(
            flavor=site.cluster.control_plane.flavor, root_volume=RootVolume(size=30, types=("slow",), zones=("az8",))
        ),
        compute=MachinePool(replicas=2, flavor=site.flavor("small", 4096, 1, 20)),
    )
    small = "flavor 'small' has"
    assert sorted(each.partition("; there is")[0].partition("; it has")[0] for each in found) == [
        "error compute.platform.openstack.type: flavor 'small' has 1 vCPUs, 2 are needed",
        "error compute.platform.openstack.type: flavor 'small' has 4096 MiB, 8192 are needed",
        f"error compute.platform.openstack.type: {small} a disk of 20 GiB",
        "error controlPlane.platform.openstack.rootVolume.types: there is no volume type 'slow' available",
        "error controlPlane.platform.openstack.rootVolume.zones: "
        "there is no availability zone of volumes 'az8' available",
        f"error {PLATFORM}.clusterOSImage: there is no image 'nobodys' that this project sees",
        f"error {PLATFORM}.defaultMachinePlatform.type: there is no flavor 'nobodys' for this project",
        f"error {PLATFORM}.defaultMachinePlatform.zones: there is no availability zone of compute 'az9' available",
        "warning controlPlane.platform.openstack.rootVolume.size: a 30 GiB root volume is below the recommendation",
    ]


def test_an_image_twice_and_one_that_is_not_active(site: Site) -> None:
    second = site.image("rhcos")
    site.admin.image.deactivate_image(second)
    (finding,) = site.check(code=1)
    assert finding["what"].startswith("2 images are called 'rhcos': ")
    site.carry_out(finding["fix"], site.tenant.cloud)
    assert site.told() == []
    assert site.connection.image.get_image(second.id).name == f"rhcos-{second.id[:8]}"
    site.connection.image.delete_image(second)
    (image,) = site.connection.image.images(name="rhcos")
    site.admin.image.deactivate_image(image)
    (finding,) = site.check(code=1)
    assert finding["what"] == "image 'rhcos' is deactivated"
    site.carry_out(finding["fix"], site.tenant.cloud)
    assert site.told() == []


def test_flavors_that_a_fix_creates_or_names_are_large_enough(site: Site) -> None:
    site.limit("compute", {"ram": -1, "cores": -1})
    name = f"it's new-{site.suffix}"
    both = {"control_plane": MachinePool(flavor=name), "compute": MachinePool(replicas=2, flavor=name)}
    first, _ = site.check(code=1, **both)
    site.carry_out(first["fix"])
    site.made.append(lambda: site.admin.compute.delete_flavor(site.admin.compute.find_flavor(name)))
    assert site.told(**both) == []
    private = site.admin.compute.create_flavor(name=f"p-{site.suffix}", ram=8192, vcpus=2, disk=100, is_public=False)
    site.made.append(lambda: site.admin.compute.delete_flavor(private))
    hidden = {"compute": MachinePool(replicas=2, flavor=private.name)}
    (missing,) = site.check(code=1, **hidden)
    site.carry_out(missing["fix"].partition("private: ")[2].partition("; ")[0])
    assert site.told(**hidden) == []
    small = site.flavor("tiny", 1024, 1, 10)
    found = site.check(code=1, compute=MachinePool(replicas=2, flavor=small))
    assert {each["code"] for each in found} == {"flavor.too-small", "flavor.small-disk"}
    (named,) = {each["fix"].removeprefix("write ").partition(", of ")[0] for each in found}
    assert site.told(compute=MachinePool(replicas=2, flavor=named)) == []


# --- who installs -------------------------------------------------------------------------


def test_credentials_and_the_registry(site: Site) -> None:
    (said,) = site.told(cloud=site.tenant.cloud)
    assert said == f"warning clouds.yaml: {site.tenant.cloud}: holds a user's password"
    expires = datetime.now(UTC) + timedelta(days=30)
    site.entry("short", site.credential(expires_at=f"{expires:%Y-%m-%dT%H:%M:%S}", roles=[{"name": "member"}]))
    short, registry = sorted(site.told(cloud="short"))
    what = f"is an application credential that expires at {expires:%Y-%m-%dT%H:%M:%S}.000000 (UTC)"
    assert short == f"warning clouds.yaml: short: {what}"
    assert registry.startswith("warning object-store: missing role swiftoperator (has: member")
    site.limit("volume", {"gigabytes": 499})
    assert [each for each in site.told(code=1, cloud="short") if "quota" in each] == [
        "error quota.gigabytes: 500 GiB are needed (4 of machines + the registry's, without an object store), "
        "499 of 499 GiB are free"
    ]


def test_entries_that_fixes_create_suit(site: Site) -> None:
    """The names of application credentials are unique per user: each fix chooses a free one."""
    (password,) = site.check(cloud=site.tenant.cloud)
    site.new_entry("instead-of-password", password["fix"])
    assert site.told(cloud="instead-of-password") == []
    expires = f"{datetime.now(UTC) + timedelta(days=30):%Y-%m-%dT%H:%M:%S}"
    site.entry("expires", site.credential(expires_at=expires))
    (expiring,) = site.check(cloud="expires")
    site.new_entry("unlimited", expiring["fix"])
    assert site.told(cloud="unlimited") == []
    site.entry("narrow", site.credential(roles=[{"name": "member"}]))
    (registry,) = site.check(cloud="narrow")
    grant, _, again = registry["fix"].partition("; then: ")
    site.carry_out(grant)
    site.new_entry("wide", again)
    assert site.told(cloud="wide") == []
    site.entry("reads", site.credential(roles=[{"name": "reader"}]))
    reading = next(each for each in site.check(code=1, cloud="reads") if each["code"] == "credential.read-only")
    site.new_entry("writes", reading["fix"])
    assert {each["code"] for each in site.check(cloud="writes")} == {"object-store.unusable"}
    (old,) = site.check(code=1, release="4.11")
    assert (old["code"], "user and password" in old["fix"]) == ("credential.unsupported", True)
    assert site.told(release="4.11", cloud=site.tenant.cloud) == []


def test_an_entry_that_leads_nowhere(site: Site) -> None:
    good = site.credential()
    site.entry("elsewhere", good | {"region_name": "nowhere"})
    assert [each for each in site.told(code=1, cloud="elsewhere") if "region" in each] == [
        "error clouds.yaml: elsewhere: region_name: 'nowhere' is not a region of the cloud"
    ]
    site.entry("untrusted", good | {"cacert": "ca.pem"})
    (said,) = site.told(code=1, cloud="untrusted")
    assert "ca.pem (relative to the installer's working directory" in said
    site.entry("locked", good | {"auth": good["auth"] | {"application_credential_secret": "wrong"}})
    (said,) = site.told(code=1, cloud="locked")
    assert "401" in said
    assert "wrong" not in said
    (said,) = site.told(code=1, cloud="unwritten")
    assert "has no entry 'unwritten'" in said


def test_a_shell_that_means_another_cloud(site: Site) -> None:
    site.prep.environment |= {"OS_CLOUD": site.tenant.cloud, "OS_PASSWORD": "hush"}
    found = site.told("--os-cloud", "devcloud-admin")
    assert sorted(each.partition(":")[0] for each in found) == [
        "warning --os-cloud",
        "warning OS_CLOUD",
        "warning environment",
    ]
    assert "hush" not in "".join(found)
