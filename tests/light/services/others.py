"""Heat with one deleted stack, and Swift's accounts without containers: what is asked although no spec declares it."""

from __future__ import annotations

from tests.light.apis import OBJECT_STORE, ORCHESTRATION
from tests.light.web import NOTHING, Answer, Refused, Request

OPERATORS = {"swiftoperator", "ResellerAdmin"}
META = b"x-account-meta-"
GONE = "7b1f0c3e5d8a4962b0e1f2a3c4d5e6f7"


@ORCHESTRATION.on("GET", "/", public=True)
def versions(asked: Request) -> Answer:
    links = [{"rel": "self", "href": f"{asked.url}/v1/"}]
    return Answer(300, {"versions": [{"id": "v1.0", "status": "CURRENT", "links": links}]})


@ORCHESTRATION.on("GET", "/v1/{}/stacks")
def list_stacks(asked: Request, _project_id: str) -> Answer:
    gone = {"id": GONE, "stack_name": "gone", "stack_status": "DELETE_COMPLETE", "project": GONE}
    return Answer(200, {"stacks": [gone] if asked.says("show_deleted") and asked.caller.is_admin else []})


def _account(asked: Request, account: str) -> dict[bytes, bytes]:
    """Return the metadata of an account, which only operators of its project see."""
    caller = asked.caller
    own = account == f"AUTH_{caller.project_id}"
    if "ResellerAdmin" not in caller.roles and not (own and OPERATORS & caller.roles):
        raise Refused(403, "Access was denied to this resource.")
    return asked.cloud.accounts.setdefault(account, {})


@OBJECT_STORE.on("GET", "/v1/{}")
def show_account(asked: Request, account: str) -> Answer:
    metadata = tuple(_account(asked, account).items())
    if asked.method == "HEAD":
        return Answer(204, headers=metadata)
    return Answer(200, [], metadata)


@OBJECT_STORE.on("POST", "/v1/{}")
def change_account(asked: Request, account: str) -> Answer:
    _account(asked, account).update({name: value for name, value in asked.headers.items() if name.startswith(META)})
    return NOTHING
