"""Which servers of Nova run, and the MAC addresses of their ports: a file each, which the fake hypervisor writes."""

import json
import os
import pathlib


def tune(folder):
    """Let the fake hypervisor write what a real one would do: plug the ports of a server that runs."""
    from nova.compute import power_state
    from nova.virt import fake

    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)

    def write(driver, instance, ports):
        path = folder / instance.uuid
        known = driver.instances.get(instance.uuid)
        if known is None or known.state != power_state.RUNNING:
            path.unlink(missing_ok=True)
            return
        partial = folder / f".{instance.uuid}"
        partial.write_text(json.dumps(ports))
        os.replace(partial, path)

    def written_after(name, change=lambda ports, arguments: ports):
        original = getattr(fake.FakeDriver, name)

        def method(driver, *arguments, **named):
            answer = original(driver, *arguments, **named)
            instance = next(each for each in arguments if hasattr(each, "info_cache"))
            network_info = named.get("network_info") or instance.get_network_info()
            write(driver, instance, change({vif["id"]: vif["address"] for vif in network_info}, arguments))
            return answer

        setattr(fake.FakeDriver, name, method)

    for name in ("spawn", "power_on", "power_off", "destroy"):
        written_after(name)
    attached = "attach_interface", lambda ports, arguments: ports | {arguments[-1]["id"]: arguments[-1]["address"]}
    detached = "detach_interface", lambda ports, arguments: {k: ports[k] for k in ports if k != arguments[-1]["id"]}
    written_after(*attached)
    written_after(*detached)


def read(folder):
    """Return by server that runs the MAC addresses of its ports."""
    found = {}
    for path in pathlib.Path(folder).glob("[!.]*"):
        try:
            found[path.name] = json.loads(path.read_text())
        except FileNotFoundError:
            continue  # stopped since
    return found
