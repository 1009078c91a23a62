"""The ASGI application: HTTP and server-sent events."""

import gc
import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "monarch_portal.settings")

django.setup(set_prefix=False)

# These look at settings and models, which are there from now on.
from jobs.api.body_limit import BodyLimit  # noqa: E402
from monarch_portal.request_threads import RequestHandler  # noqa: E402

# How many objects are made between two looks for garbage. A thousand live streams make as many in
# a moment as Python's own number (700), and looking through all of theirs takes long.
gc.set_threshold(20_000)

application = BodyLimit(RequestHandler())
