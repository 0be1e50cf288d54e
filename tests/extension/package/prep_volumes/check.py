"""The volumes of a spec against its quotas."""

from __future__ import annotations

from collections.abc import Iterator

from openstack_prep.base.errors import Mistake
from openstack_prep.core.model import Context
from openstack_prep.resources.compute.quota import Quota
from prep_volumes.volume import Volume

CODE = "volumes.over-quota"


def check(context: Context) -> Iterator[Mistake]:
    """Yield each quota that the declared volumes exceed. It needs no cloud, so ``validate`` finds it, too."""
    for quota in context.declared(Quota):
        sizes = [each.size for each in quota.of_project(context.declared(Volume))]
        needed = {"volumes": len(sizes), "gigabytes": sum(sizes), "per_volume_gigabytes": max(sizes, default=0)}
        for name, need in needed.items():
            limit = getattr(quota, name)
            if limit is not None and 0 <= limit < need:  # -1 is unlimited
                what = f"{name} is {limit}, but the volumes of this spec need {need}"
                fix = f"raise it to {need} at least, or declare less"
                yield Mistake.about(quota.key, what, fix, code=CODE, field=name)
