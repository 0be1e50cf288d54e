"""The spec: one YAML file per cluster, read into resources."""

from openstack_prep.spec.schema import schema
from openstack_prep.spec.sections import Clouds, Sections
from openstack_prep.spec.spec import Spec, load_spec, spec_of

__all__ = ["Clouds", "Sections", "Spec", "load_spec", "schema", "spec_of"]
