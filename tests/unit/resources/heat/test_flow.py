from __future__ import annotations

import yaml

from openstack_prep.resources.heat.flow import Flow

TEMPLATE = yaml.safe_load("""
parameters:
  secret: {type: string, hidden: true}
  other: {type: string, hidden: true}
  plain: {type: string}
conditions:
  given: {not: {equals: [{get_param: other}, ""]}}
resources:
  made: {type: OS::Heat::RandomString}
  config: {type: OS::Heat::Value, properties: {value: {map_merge: [{token: {get_param: [secret, key]}}]}}}
  wrapped: {type: OS::Heat::Value, properties: {value: {list_join: ["", [{get_attr: [config, value, token]}]]}}}
  group: {type: OS::Heat::ResourceGroup, properties: {resource_def: {files: {get_attr: [wrapped, value]}}}}
  bare: {type: OS::Nova::Server, condition: given, properties: {name: {get_param: plain}, of: {get_resource: group}}}
  loop: {type: OS::Heat::Value, properties: {value: {get_attr: [loop, value]}}}
outputs:
  key: {value: {str_replace: {template: a, params: {a: {get_attr: [wrapped, value]}, b: {get_attr: [made, value]}}}}}
  name: {value: {get_param: plain}}
""")


def test_values_reach_resources_by_attributes() -> None:
    flow = Flow(TEMPLATE)
    assert flow.into("group") == flow.into("wrapped") == flow.into("config") == {"secret"}
    assert flow.into("bare") == {"plain"}  # neither by a condition nor by an id
    assert flow.into("loop") == flow.into("made") == flow.into("missing") == set()


def test_functions_alter_what_a_resource_gets() -> None:
    template = yaml.safe_load("""
    parameters: {secret: {type: string, hidden: true}}
    resources:
      copied: {properties: {name: {list_join: ["", [a, {get_param: secret}]]}}}
      split: {properties: {name: {str_split: ["-", {get_param: secret}, 1]}}}
      behind: {properties: {name: {get_attr: [split, name]}}}
      later: {properties: {name: {yaql: {data: {get_attr: [copied, name]}}}}}
    """)
    altered = [name for name in template["resources"] if Flow(template).alters(frozenset({"secret"}), name)]
    assert altered == ["split", "behind", "later"]


def test_values_reach_outputs() -> None:
    flow = Flow(TEMPLATE)
    assert (flow.into_output("key"), flow.into_output("name")) == ({"secret"}, {"plain"})
    assert {(use.name, use.attribute) for use in flow.uses_of_output("key")} == {
        *(("wrapped", "value"), ("config", "value"), ("made", "value"))
    }


def test_places_are_paths_in_the_template() -> None:
    flow = Flow(TEMPLATE)
    assert flow.places("secret") == ["resources.config.properties.value.map_merge[0].token"]
    assert flow.places("plain") == ["resources.bare.properties.name", "outputs.name.value"]
    assert flow.places("other") == []
