"""The spec: one YAML file per cluster, read into resources."""

from openstack_prep.spec.loading import Spec, load_spec, spec_of
from openstack_prep.spec.schema import schema
from openstack_prep.spec.sections import Clouds, Sections

__all__ = ["Clouds", "Sections", "Spec", "load_spec", "schema", "spec_of"]
