# SPDX-License-Identifier: Apache-2.0
"""A mount that hangs under traffic is soon out of service, whatever it is that hangs there first."""

import pytest

import hung_kit
from dead_mounts_kit import STALE_MS, world  # noqa: F401
from forms import chosen

pytestmark = pytest.mark.needs_flashpache

# As installed, but for what stale answers need.
SETTINGS = {"ttl_ms": 3000, "workers": 8, "watch": "auto", "mount_timeout_ms": 2000, "stale_if_error_ms": STALE_MS}
BEFORE_S = chosen((1.0,), (1.0, 1.3, 1.6, 2.1, 2.6, 3.1))    # a refresh is due from 1.5 s on, and after 3 s


@pytest.mark.parametrize("before", BEFORE_S)
@pytest.mark.parametrize("below", ("slow", "link"))
@pytest.mark.parametrize("traffic", ("light", "heavy"))
def test_traffic(world, traffic, below, before):  # noqa: F811
    w = world(f"{traffic}-{below}-{before}", **SETTINGS)
    (w.root / "link").symlink_to("slow")
    hung_kit.settle()
    server = w.serve(10)
    one = hung_kit.Try(w, getattr(hung_kit, traffic)(server.port, below), before)
    print(f"ROW {traffic} {below} {before}: {one}")
    log = w.daemon.log_text()
    print("\n".join(line[:130] for line in log.splitlines() if "FP0044" in line or "FP0021" in line or "FP0046" in line))
    assert one.out_s is not None
