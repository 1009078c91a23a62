"""The portal's own settings, with nodes without machines beside them."""

import os

from monarch_portal.settings import *  # noqa: F403

MPORTAL_FAKE_BACKEND = os.environ["BENCH_FAKE_BACKEND"]
