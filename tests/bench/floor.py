"""The floor: the requests that the scenario cannot do without, and nothing else.

Eighteen, on kept-alive connections, each sent as soon as the answers that it needs are there:

     1  token of the administrator, and with it the catalogue and the administrator's id
     2  roles, for their ids                3  external network, for its id
     4  project                             5  user
   6-9  role assignments                10-11  quotas of compute and network
    12  flavor                          13-14  image, and its data
 15-16  floating IPs                       17  token of the user
    18  Temp-URL-Key of the account

    python -m tests.bench.floor AUTH_URL    in a directory that holds the image; prints the seconds
"""

from __future__ import annotations

import json
import os
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import requests
from requests.adapters import HTTPAdapter

from tests.bench import scenario
from tests.bench.scenario import Scenario
from tests.devcloud.layout import PASSWORD, REGION

REQUESTS = 18


class Floor:
    """One replay; what waits for another's answer waits in a thread of its own."""

    def __init__(self, auth_url: str, wanted: Scenario, image: Path) -> None:
        self.auth_url = auth_url
        self.wanted = wanted
        self.image = image
        self.session = requests.Session()
        self.session.mount("http://", HTTPAdapter(pool_maxsize=REQUESTS))

    def send(self, method: str, url: str, token: str = "", **options: Any) -> requests.Response:
        headers = options.pop("headers", {}) | ({"X-Auth-Token": token} if token else {})
        answer = self.session.request(method, url, headers=headers, timeout=60, **options)
        answer.raise_for_status()
        return answer

    def log_in(self, user: str, password: str, project: str) -> tuple[str, dict[str, str], str]:
        body = scenario.credentials(user, password, project)
        answer = self.send("POST", f"{self.auth_url}/auth/tokens", json=body)
        token = answer.json()
        return answer.headers["X-Subject-Token"], scenario.endpoints(token), token["token"]["user"]["id"]

    def replay(self) -> None:
        wanted = self.wanted
        token, at, admin_id = self.log_in("admin", PASSWORD, "admin")
        identity, compute, network, image = at["identity"], at["compute"], f"{at['network']}/v2.0", f"{at['image']}/v2"

        def get(url: str, **query: str) -> Any:
            return self.send("GET", url, token, params=query).json()

        def post(url: str, body: dict[str, Any]) -> Any:
            return self.send("POST", url, token, json=body).json()

        def put(url: str, body: dict[str, Any] | None = None) -> None:
            self.send("PUT", url, token, json=body)

        def project_id() -> str:
            return str(project.result()["project"]["id"])

        def assign(who: str, role: str) -> None:
            user_id = admin_id if who == "admin" else user.result()["user"]["id"]
            role_id = next(each["id"] for each in roles.result()["roles"] if each["name"] == role)
            put(f"{identity}/projects/{project_id()}/users/{user_id}/roles/{role_id}")

        def limit(url: str, envelope: str, values: dict[str, int]) -> None:
            put(f"{url}/{project_id()}", {envelope: values})

        def allocate(address: str) -> None:
            network_id = external.result()["networks"][0]["id"]
            body = {"floating_network_id": network_id, "floating_ip_address": address, "project_id": project_id()}
            post(f"{network}/floatingips", {"floatingip": body})

        def upload() -> None:
            body = {"name": wanted.image, "disk_format": "qcow2", "container_format": "bare", "owner": project_id()}
            made = post(f"{image}/images", body)
            binary = {"Content-Type": "application/octet-stream"}
            with open(self.image, "rb") as data:
                self.send("PUT", f"{image}/images/{made['id']}/file", token, data=data, headers=binary)

        def set_key() -> None:
            for role in ("member", "swiftoperator"):
                assigned[wanted.user, role].result()
            own, endpoints, _ = self.log_in(wanted.user, scenario.USER_PASSWORD, wanted.project)
            key = {"X-Account-Meta-Temp-URL-Key": scenario.TEMP_URL_KEY}
            self.send("POST", endpoints["object-store"], own, headers=key)

        with ThreadPoolExecutor(REQUESTS) as pool:
            names = {"domain_id": "default", "name": wanted.project}
            account = {"domain_id": "default", "name": wanted.user, "password": scenario.USER_PASSWORD}
            project = pool.submit(post, f"{identity}/projects", {"project": names})
            user = pool.submit(post, f"{identity}/users", {"user": account})
            external = pool.submit(get, f"{network}/networks", name=scenario.EXTERNAL)
            roles = pool.submit(get, f"{identity}/roles")
            assigned = {pair: pool.submit(assign, *pair) for pair in sorted(wanted.roles)}
            rest: list[Future[Any]] = [
                *(pool.submit(allocate, address) for address in wanted.addresses),
                pool.submit(upload),
                pool.submit(limit, f"{compute}/os-quota-sets", "quota_set", scenario.COMPUTE_QUOTA),
                pool.submit(limit, f"{network}/quotas", "quota", scenario.NETWORK_QUOTA),
                pool.submit(post, f"{compute}/flavors", {"flavor": scenario.SIZE | {"name": wanted.flavor}}),
                pool.submit(set_key),
            ]
            for each in (*assigned.values(), *rest):
                each.result()

    def write_clouds_file(self, path: Path) -> None:
        auth = {
            "auth_url": self.auth_url,
            "username": self.wanted.user,
            "password": scenario.USER_PASSWORD,
            "project_name": self.wanted.project,
            "user_domain_name": "Default",
            "project_domain_name": "Default",
        }
        content = {"clouds": {self.wanted.project: {"region_name": REGION, "auth": auth}}}
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            json.dump(content, file)


if __name__ == "__main__":
    floor = Floor(sys.argv[1], scenario.MEASURED, Path(scenario.IMAGE))
    started = time.monotonic()
    floor.replay()
    floor.write_clouds_file(Path("clouds.yaml"))
    print(time.monotonic() - started)
