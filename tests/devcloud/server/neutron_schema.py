"""Creates Neutron's tables from its models: its migrations do not run on SQLite.

Of the migrations only one also writes rows into a new database: the rules that every new security
group starts with (egress for all, ingress from the same group for «default»).  Without them groups
are made with no rules at all, and nothing complains.
"""

import pathlib
import runpy
import sys

import neutron.db.migration
import sqlalchemy
from neutron.db.migration.models import head

DEFAULT_RULES = "alembic_migrations/versions/*/expand/c33da356b165_*.py"


def main():
    engine = sqlalchemy.create_engine(sys.argv[1])
    metadata = head.get_metadata()
    metadata.create_all(engine)
    (path,) = pathlib.Path(neutron.db.migration.__file__).parent.glob(DEFAULT_RULES)
    migration = runpy.run_path(str(path))
    kind = migration["table_name"]
    attributes, rules = metadata.tables["standardattributes"], metadata.tables[kind]
    with engine.begin() as connection:
        for rule in migration["default_template_rules"]:
            values = {name: value for name, value in rule.items() if name != "description"}
            attribute = attributes.insert().values(resource_type=kind, description=rule["description"])
            made = connection.execute(attribute).inserted_primary_key[0]
            connection.execute(rules.insert().values(standard_attr_id=made, **values))
