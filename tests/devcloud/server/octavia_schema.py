"""Creates Octavia's tables from its models: its migrations do not run on SQLite.

Of what they write into a new database, the names in the look-up tables are needed: other rows refer to them.
"""

import sys

import sqlalchemy
from octavia.common import constants
from octavia.db import base_models, models

NAMES = {
    models.ProvisioningStatus: constants.SUPPORTED_PROVISIONING_STATUSES,
    models.OperatingStatus: constants.SUPPORTED_OPERATING_STATUSES,
    models.Protocol: constants.SUPPORTED_PROTOCOLS,
    models.Algorithm: constants.SUPPORTED_LB_ALGORITHMS,
    models.AmphoraRoles: constants.SUPPORTED_AMPHORA_ROLES,
    models.LBTopology: constants.SUPPORTED_LB_TOPOLOGIES,
    models.SessionPersistenceType: constants.SUPPORTED_SP_TYPES,
    models.HealthMonitorType: constants.SUPPORTED_HEALTH_MONITOR_TYPES,
    models.VRRPAuthMethod: constants.SUPPORTED_VRRP_AUTH,
    models.L7RuleType: constants.SUPPORTED_L7RULE_TYPES,
    models.L7RuleCompareType: constants.SUPPORTED_L7RULE_COMPARE_TYPES,
    models.L7PolicyAction: constants.SUPPORTED_L7POLICY_ACTIONS,
    models.ClientAuthenticationMode: constants.SUPPORTED_CLIENT_AUTH_MODES,
}


def main():
    engine = sqlalchemy.create_engine(sys.argv[1])
    base_models.BASE.metadata.create_all(engine)
    with engine.begin() as connection:
        for model, names in NAMES.items():
            connection.execute(model.__table__.insert(), [{"name": name} for name in names])
