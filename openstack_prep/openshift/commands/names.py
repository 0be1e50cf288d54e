"""``names``: the DNS names of a cluster, for a hosts file, dnsmasq or BIND."""

from __future__ import annotations

import argparse
from pathlib import Path

from openstack_prep.base.errors import ConfigError, Mistake, SpecError
from openstack_prep.base.raw import Values
from openstack_prep.cli.output import print_result
from openstack_prep.openshift.installer import find_file
from openstack_prep.openshift.names import of_cluster as names

INSTALL_CONFIG = "install-config.yaml"


def run(options: argparse.Namespace) -> int:
    if options.replace and (options.write is None or options.form == "bind"):
        raise ConfigError("--replace only applies to --write of a hosts or dnsmasq file; remove it")
    config = _install_config(options)
    if options.remove:
        if options.form == "bind":
            fix = "delete the file and its entry in the name server's configuration"
            raise SpecError([Mistake("remove", "a zone is a file of its own", fix)])
        domain = names.domain_of(config, cluster_name=options.cluster_name, base_domain=options.base_domain)
        changed = names.remove(options.remove, domain)
        text = f"{options.remove}: names of {domain} {'removed' if changed else 'not found'}"
        print_result(options, text, {"domain": domain, "path": str(options.remove), "changed": changed})
        return 0
    found = names.names_of(
        config,
        cluster_name=options.cluster_name,
        base_domain=options.base_domain,
        api=options.api,
        ingress=options.ingress,
        api_int=options.api_int,
        internal=options.internal,
    )
    data: Values = {"domain": found.domain, "api": found.api, "ingress": found.ingress, "api_int": found.api_int}
    if options.write:
        if not (folder := options.write.absolute().parent).is_dir():
            what = f"--write {options.write}: the folder {folder} does not exist"
            raise ConfigError(f"{what}; create it, or name another file")
        changed = names.write(options.write, found, options.form, options.server, replace=options.replace)
        text = f"{options.write}: names of {found.domain} {'written' if changed else 'are up to date'}"
        print_result(options, text, {**data, "path": str(options.write), "changed": changed})
    else:
        text = names.text_of(found, options.form, options.server)
        print_result(options, text.rstrip("\n"), {**data, "text": text})
    return 0


def _install_config(options: argparse.Namespace) -> Path | None:
    """Return the install-config to read, or its copy; None if there is none, or the options replace it."""
    if options.install_config:
        return find_file(options.install_config, INSTALL_CONFIG)
    path = find_file(INSTALL_CONFIG, INSTALL_CONFIG)
    return path if path.exists() and not (options.cluster_name and options.base_domain) else None
