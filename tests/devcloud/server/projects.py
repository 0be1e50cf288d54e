"""How each OpenStack project is run whole in one process: its WSGI application and its workers.

Because both share the process, oslo.messaging's in-memory ``fake://`` transport carries the RPC
between them, and no message broker is needed.  Imports stand inside the functions: each process
runs one project, and what must be set before an import differs between them.
"""

import importlib
import os
import pkgutil
import socket
import sys
import threading
import time

# What a project imports while it starts, beside its WSGI application: imported once in the warm
# parent, inherited by every fork.  The modules named *.wsgi.* build the application when imported,
# so they must not stand here.
PRELOAD = {
    "keystone": (
        "keystone.server.flask.core",
        "keystone.server.flask.application",
        "keystone.server.backends",
    ),
    "glance": ("glance.common.wsgi_app", "glance.api.v2.router", "glance_store._drivers.filesystem"),
    "placement": ("placement.deploy", "placement.wsgi_wrapper"),
    "nova": (
        "nova.api.openstack.compute.routes",
        "nova.compute.manager",
        "nova.conductor.manager",
        "nova.scheduler.manager",
        "nova.virt.fake",
    ),
    "neutron": (
        "neutron.server",
        "neutron.plugins.ml2.plugin",
        "neutron.services.l3_router.l3_router_plugin",
    ),
    "cinder": (
        "cinder.api.v3.router",
        "cinder.volume.manager",
        "cinder.volume.flows.manager.create_volume",
        "cinder.scheduler.manager",
        "cinder.scheduler.filter_scheduler",
        "os_brick.initiator.connector",
    ),
    "heat": (
        "heat.engine.service",
        "heat.api.openstack.v1",
        "heat.engine.environment",
        "openstack.connection",
        "neutron_lib.api.definitions",
        "keystoneclient.v3.client",
    ),
    "designate": (
        "designate.api.v2",
        "designate.central.service",
        "designate.mdns.service",
        "designate.producer.service",
        "designate.worker.service",
    ),
    "octavia": (
        "octavia.api.root_controller",
        "octavia.api.drivers.driver_agent.driver_listener",
        "ovn_octavia_provider.agent",
        "ovn_octavia_provider.driver",
    ),
}

_kept = []  # workers live as long as the process


def preload(name):
    """Import what the project will need, into the process that will be forked."""
    if name in ("neutron", "heat", "designate", "octavia"):
        _use_threads()
    elif name in ("nova", "cinder"):
        importlib.import_module(f"{name}.monkey_patch").patch(backend="threading")
    if name == "cinder":
        # its modules take each other's classes from cinder.objects as they load
        importlib.import_module("cinder.wsgi.wsgi").objects.register_all()
    for module in PRELOAD[name]:
        importlib.import_module(module)
    if name == "heat":
        _import_below("heat.engine.clients", "heat.engine.resources")


def _import_below(*packages):
    for package in map(importlib.import_module, packages):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)


def application(name, etc, needs):
    """The WSGI application of a project, its workers running.

    ``needs`` are ports that must answer before workers start.
    """
    return PROJECTS[name](etc, needs)


def _use_threads():
    from oslo_service import backend

    backend.init_backend(backend.BackendType.THREADING)


def _await_ports(ports, seconds=120):
    deadline = time.monotonic() + seconds
    for port in ports:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)


def _keystone(etc, needs):
    os.environ["OS_KEYSTONE_CONFIG_FILES"] = f"{etc}/keystone.conf"
    from keystone.wsgi import api

    return api.application


def _glance(etc, needs):
    os.environ["OS_GLANCE_CONFIG_DIR"] = etc
    from glance.wsgi import api

    return api.application


def _placement(etc, needs):
    os.environ["OS_PLACEMENT_CONFIG_DIR"] = etc
    from placement.wsgi import api

    return api.application


def _neutron(etc, needs):
    os.environ["OS_NEUTRON_CONFIG_FILES"] = f"{etc}/neutron.conf"
    if root := os.environ.get("OPENSTACK_PREP_DEVCLOUD_OVN"):
        from tests.devcloud.server import ovn

        ovn.start(root, f"{etc}/../../data/neutron/ovn")
        ovn.take_all_events()
        os.environ["ASGI_WORKERS"] = "1"  # as many processes of Neutron as there are
    from neutron.wsgi import api

    return api.application


def _nova(etc, needs):
    """API, conductor, scheduler and one compute host."""
    os.environ["OS_NOVA_CONFIG_DIR"] = etc
    built = importlib.import_module("nova.wsgi.osapi_compute").application  # registers options, database, RPC
    from nova import context, objects, service
    from nova.compute import rpcapi as compute
    from nova.conductor import rpcapi as conductor
    from nova.objects import host_mapping
    from nova.scheduler import rpcapi as scheduler

    objects.Service.enable_min_version_cache()
    _recall_servers()
    if os.environ.get("OPENSTACK_PREP_DEVCLOUD_PACKETS") == "1":
        from tests.devcloud.server import machine_files

        machine_files.tune(f"{etc}/../../run/servers")
    _await_ports(needs)  # compute asks Placement for its resource provider when it starts
    for options in (
        {"binary": "nova-conductor", "topic": conductor.RPC_TOPIC},
        {"binary": "nova-scheduler", "topic": scheduler.RPC_TOPIC},
        {"binary": "nova-compute", "topic": compute.RPC_TOPIC, "topic_alt": compute.RPC_TOPIC_ALT},
    ):
        worker = service.Service.create(**options)
        worker.start()
        worker.service_ref.report_count += 1
        worker.service_ref.save()  # seen up now, not at the first report in ten seconds
        _kept.append(worker)
    host_mapping.discover_hosts(context.get_admin_context())
    return built


def _recall_servers():
    """Give the fake hypervisor back the servers that it ran before a restart."""
    from nova import context, objects
    from nova.compute import power_state
    from nova.virt import fake

    init_host = fake.FakeDriver.init_host

    def init_and_recall(self, host):
        init_host(self, host)
        known = objects.InstanceList.get_by_host(context.get_admin_context(), host, expected_attrs=["flavor"])
        for instance in known:
            if instance.power_state in (power_state.RUNNING, power_state.SHUTDOWN):
                self.instances[instance.uuid] = fake.FakeInstance(instance.name, instance.power_state, instance.uuid)

    fake.FakeDriver.init_host = init_and_recall


def _cinder(etc, needs):
    """API, one volume service and the scheduler.

    ``cinder.cmd.volume`` must not be imported: it patches the process for eventlet.
    """
    sys.argv = ["cinder-api", "--config-file", f"{etc}/cinder.conf"]
    from cinder.wsgi import wsgi

    built = wsgi.initialize_application()  # registers options and objects, starts RPC

    import os_brick
    from cinder import service
    from oslo_config import cfg

    os_brick.setup(cfg.CONF)
    volumes = [
        {
            "binary": "cinder-volume",
            "host": f"{cfg.CONF.host}@{backend}",
            "service_name": backend,
            "coordination": True,
        }
        for backend in cfg.CONF.enabled_backends
    ]
    # the scheduler waits, as it starts, for a first report of a volume service
    for options in (*volumes, {"binary": "cinder-scheduler"}):
        worker = service.Service.create(**options)
        _report_as_itself(worker)
        worker.start()
        worker.report_state()  # seen up now, not at the first report in ten seconds
        _kept.append(worker)
    return built


_reporting = threading.Lock()


def _report_as_itself(worker):
    """Cinder keeps the id of «the» service of a process in the class; here several share one.

    Without this, all would report as the last one, and the others go down after a minute.
    """
    report = worker.report_state

    def report_state():
        with _reporting:
            type(worker).service_id = worker.origin_service_id
            report()

    worker.report_state = report_state


def _heat(etc, needs):
    sys.argv = ["heat-api", "--config-file", f"{etc}/heat.conf"]
    built = importlib.import_module("heat.wsgi.api").application  # registers options
    from heat.common import config
    from heat.engine import service, template
    from heat.rpc import api as rpc_api
    from oslo_config import cfg

    config.startup_sanity_check()
    template._get_template_extension_manager()
    worker = service.EngineService(cfg.CONF.host, rpc_api.ENGINE_TOPIC)
    worker.start()
    _kept.append(worker)
    return built


def _designate(etc, needs):
    """API, central, worker, producer, and its own name server (mdns), which is also the one that it publishes to."""
    os.environ["OS_DESIGNATE_CONFIG_DIR"] = etc
    built = importlib.import_module("designate.wsgi.api").application  # reads options, starts RPC
    from designate.central import service as central
    from designate.mdns import service as mdns
    from designate.producer import service as producer
    from designate.worker import service as worker

    for module in (central, mdns, worker, producer):
        service = module.Service()
        service.start()
        _kept.append(service)
    _publish_to_itself(_kept[0])
    return built


def _publish_to_itself(central):
    """Let the one pool ask mdns whether a change has arrived; its backend has nothing to do."""
    from designate import context
    from designate.objects.adapters import DesignateAdapter
    from oslo_config import cfg

    host, _, port = cfg.CONF["service:mdns"].listen[0].partition(":")
    server = {"host": host, "port": int(port)}
    everything = context.DesignateContext.get_admin_context(all_tenants=True)
    pool = central.storage.get_pool(everything, cfg.CONF["service:central"].default_pool_id)
    if not pool.targets:
        target = {"type": "fake", "masters": [server], "options": {"host": host, "port": port}}
        fields = {
            "nameservers": [server],
            "targets": [target],
            "ns_records": [{"hostname": "ns.devcloud.test.", "priority": 1}],
        }
        fields |= {"name": pool.name, "also_notifies": []}
        central.storage.update_pool(everything, DesignateAdapter.parse("YAML", fields, pool))


def _octavia(etc, needs):
    """API and driver agent, whose processes are threads here, and OVN's provider in both."""
    import socketserver

    from octavia.api import app
    from octavia.api.drivers.driver_agent import driver_listener
    from octavia.common import service
    from octavia_lib.api.drivers import driver_lib
    from oslo_config import cfg
    from ovn_octavia_provider import agent

    from tests.devcloud.server import sqlite_tuning

    class Server(socketserver.ThreadingUnixStreamServer):
        daemon_threads = True

    driver_listener.ForkingUDSServer = Server
    sqlite_tuning.tune_octavia()
    service.prepare_service(["octavia", "--config-file", f"{etc}/octavia.conf"])
    service.prepare_service = lambda argv: None  # the application would do it again
    sockets = cfg.CONF.driver_agent
    # the provider asks for no other place than the library's
    driver_lib.DriverLibrary.__init__.__defaults__ = (
        sockets.status_socket_path,
        sockets.stats_socket_path,
        sockets.get_socket_path,
    )
    _await_ports(needs)  # Neutron's process has OVN's databases
    never = threading.Event()
    for listen in (driver_listener.status_listener, driver_listener.stats_listener, driver_listener.get_listener):
        threading.Thread(target=listen, args=(never,), daemon=True).start()
    built = app.setup_app()
    threading.Thread(target=agent.OvnProviderAgent, args=(never,), daemon=True).start()
    return built


PROJECTS = {
    "keystone": _keystone,
    "glance": _glance,
    "placement": _placement,
    "nova": _nova,
    "neutron": _neutron,
    "cinder": _cinder,
    "heat": _heat,
    "designate": _designate,
    "octavia": _octavia,
}
