"""Print what Heat's own schemas find wrong with resources of Octavia (JSON, by name); runs where Heat is installed."""

import collections.abc  # noqa: F401  (yaql 3.2 needs it to be imported)
import json
import sys

from heat.engine.resources.openstack.octavia import health_monitor, listener, loadbalancer, pool, pool_member

CLASSES = {}
for module in (health_monitor, listener, loadbalancer, pool, pool_member):
    CLASSES |= module.resource_mapping()

for name, each in json.load(sys.stdin).items():
    schema, given = CLASSES[each["type"]].properties_schema, each["properties"]
    for unknown in given.keys() - schema.keys():
        print(f"{name}: unknown property {unknown}")
    for needed in (key for key, value in schema.items() if value.required and key not in given):
        print(f"{name}: lacks {needed}")
    for key, value in given.items():
        alternatives = value["if"][1:] if isinstance(value, dict) and "if" in value else [value]
        for constant in alternatives:
            if key in schema and not isinstance(constant, dict):
                schema[key].validate_constraints(constant, skipped=["CustomConstraint"])
