"""Imports all that ``openstack-prep`` may need; for the process that warm.py forks."""

import importlib
import pkgutil
from importlib import resources

import keystoneauth1.identity.v3
import openstack.connection

import openstack_prep
from openstack_prep.spec import schema

assert keystoneauth1, openstack
for module in pkgutil.walk_packages(openstack_prep.__path__, "openstack_prep."):
    importlib.import_module(module.name)
# the models of a spec are made when one is read
openstack_prep.load_spec(resources.files("openstack_prep.install_configs") / "minimal.yaml")
schema()
