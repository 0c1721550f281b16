# SPDX-License-Identifier: Apache-2.0
"""The load generator's own tests (tests/lab/bench/selftest*.py), with the built program."""

import sys

import pytest

from conftest import REPO, built

sys.path.insert(0, str(REPO / "tests/lab/bench"))

import selftest  # noqa: E402
from selftest import *  # noqa: E402,F401,F403
from selftest_load import *  # noqa: E402,F401,F403


@pytest.fixture(scope="module", autouse=True)
def program():
    selftest.PROGRAM = built("tests/lab/flashpache-bench")
