"""Lets services work out once what they work out anew for each request, and what cannot have changed meanwhile.

oslo.policy goes through all registered rules, and looks whether the files of policies have changed, at each question
(6.0.1, policy.py, Enforcer.load_rules). Nova, Keystone and Cinder make a class of validators for each body, query and
answer (api/validation/validators.py of nova 34.0.0, keystone 30.0.0 and cinder 29.0.0). Each question to oslo.policy,
each middleware of oslo and each controller of Pecan is asked for its signature (oslo.policy 6.0.1, _checks.py, _check;
oslo.middleware 8.2.0, base.py, ConfigurableMiddleware; Pecan 1.8.0, core.py, PecanBase.invoke_controller).
"""

import functools
import inspect

import jsonschema
from oslo_middleware import base
from oslo_policy import _checks, policy

from tests.devcloud.server.shadow import Shadow


def tune():
    """Call before the first request."""
    _load_rules_once()
    _keep_validators()
    base.getfullargspec = _kept(base.getfullargspec)
    _checks.inspect = Shadow(inspect, getfullargspec=_kept(inspect.getfullargspec))


def tune_pecan():
    """Call where Pecan serves, before the first request."""
    from pecan import core

    core.getargspec = _kept(core.getargspec)


def _kept(signature_of):
    """Return what tells the signature of a function or method, and tells it from memory the next time."""
    of_function = functools.cache(signature_of)
    return lambda method: of_function(getattr(method, "__func__", method))


def _load_rules_once():
    """Load rules again only if some were registered or set meanwhile; the files are as they were at the start."""
    load = policy.Enforcer.load_rules

    def load_new(self, force_reload=False):
        loaded, count = self.__dict__.get("devcloud_loaded", (None, 0))
        if force_reload or loaded is not self.rules or count != len(self.registered_rules):
            load(self, force_reload)
            self.devcloud_loaded = self.rules, len(self.registered_rules)

    policy.Enforcer.load_rules = load_new


def _keep_validators():
    """Keep classes of validators by what they consist of; methods among that use nothing of their instance."""
    extend = jsonschema.validators.extend
    kept = {}

    def kept_extend(validator, validators=(), *arguments, **options):
        if arguments or options:
            return extend(validator, validators, *arguments, **options)
        functions = ((name, getattr(each, "__func__", each)) for name, each in dict(validators).items())
        key = (validator, *sorted(functions, key=lambda item: item[0]))
        if key not in kept:
            kept[key] = extend(validator, validators)
        return kept[key]

    jsonschema.validators.extend = kept_extend
