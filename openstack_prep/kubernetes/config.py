"""Types of fields that hold any other keys of RKE2's or RKE's configuration, with secrets from their sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from openstack_prep.base.fields import Name
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.raw import Raw
from openstack_prep.base.secret import from_spec
from openstack_prep.kubernetes.keys.schema import SECRET, Steps, dotted, load_schema, map_values, union

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema


@dataclass(frozen=True)
class ReadsSecrets:
    """Annotation: secrets of this mapping, by RKE2's schema or the one named, may have sources such as {env: NAME}."""

    name: Literal["cluster.yml", "node"]

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import PydanticCustomError, core_schema

        def read(value: Any, info: Any) -> Any:
            try:
                return with_secrets(value, union(load_schema(self.name), load_schema("server")), info.context)
            except InvalidValue as error:  # an error type without the value, which is secret
                raise PydanticCustomError(
                    "secret", "{what}", {"what": error.what, "fix": error.fix, "code": error.code}
                ) from None

        return core_schema.with_info_before_validator_function(read, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(schema)


def with_secrets(value: object, schema: Raw, context: Raw) -> object:
    """Return a configuration with its secrets read from their sources; strings of several lines are kept as they are.

    Raises InvalidValue, which names the key and the fix.
    """

    def read(found: object, of: Raw, steps: Steps) -> object:
        one_line = isinstance(found, str) and found and "\n" not in found
        if SECRET not in of or of["type"] == "object" or not (one_line or isinstance(found, dict)):
            return found
        try:
            return from_spec(found, **context)
        except InvalidValue as error:
            raise InvalidValue(f"{dotted(steps)}: {error.what}", error.fix, error.code) from None

    return map_values(value, schema, read)


ClusterConfig = Annotated[Mapping[Name, Any], ReadsSecrets("cluster.yml")]
NodeConfig = Annotated[Mapping[Name, object], ReadsSecrets("node")]
