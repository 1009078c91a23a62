"""The portal's own settings, with those that a fleet may request beside them."""

import os

from kombu.transport import TRANSPORT_ALIASES

from monarch_portal.settings import *  # noqa: F403
from monarch_portal.settings import CELERY_BROKER_URL

# Nodes without machines, whose frames the followers fetch.
MPORTAL_FAKE_BACKEND = os.environ.get("FLEET_FAKE_BACKEND", "")
if "FLEET_UNRULY" in os.environ:
    TRANSPORT_ALIASES["unruly"] = "tests.faults.unruly_broker:Transport"
    # The part before "+" names the transport; see `celery_settings.broker_url`.
    CELERY_BROKER_URL = "unruly" + CELERY_BROKER_URL.removeprefix("redis")
