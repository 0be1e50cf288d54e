"""The type of a field that holds any other keys of RKE's or RKE2's configuration, secrets by their source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from openstack_prep.base.fields import Name
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.raw import Raw
from openstack_prep.base.secret import from_spec
from openstack_prep.kubernetes.keys.cluster_keys import CLUSTER, NODE
from openstack_prep.kubernetes.keys.language import SECRET, Kind, Steps, Tree, dotted, mapped
from openstack_prep.kubernetes.keys.rke2_keys import SERVER

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema


@dataclass(frozen=True)
class ReadsSecrets:
    """Marks a mapping in which what is secret by a tree may be given by its source, as {env: NAME} and the like."""

    name: str

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import PydanticCustomError, core_schema

        def read(value: Any, info: Any) -> Any:
            try:
                return with_secrets(value, TREES[self.name], info.context)
            except InvalidValue as error:  # its own type, for the value must not be repeated
                raise PydanticCustomError("secret", "{what}", {"what": error.what, "remedy": error.remedy}) from None

        return core_schema.with_info_before_validator_function(read, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(schema)


TREES: dict[str, dict[str, Tree]] = {"cluster": CLUSTER | SERVER, "node": NODE | SERVER}


def with_secrets(value: object, tree: Tree, context: Raw) -> object:
    """Return a configuration with its secrets fetched; texts of several lines are documents, and stay.

    Raises InvalidValue.
    """

    def read(found: object, kind: Kind, steps: Steps) -> object:
        one_line = isinstance(found, str) and found and "\n" not in found
        if kind is not SECRET or not (one_line or isinstance(found, dict)):
            return found
        try:
            return from_spec(found, **context)
        except InvalidValue as error:
            raise InvalidValue(f"{dotted(steps)}: {error.what}", error.remedy) from None

    return mapped(value, tree, read)


ClusterConfig = Annotated[Mapping[Name, Any], ReadsSecrets("cluster")]
NodeConfig = Annotated[Mapping[Name, object], ReadsSecrets("node")]
