"""The ASGI application: HTTP and server-sent events. It looks at the database before it starts."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "monarch_portal.settings")

django.setup(set_prefix=False)

# These look at settings and models, which are there from now on.
from jobs.api.base.body_limit import BodyLimit  # noqa: E402
from jobs.ground.garbage import look_seldom  # noqa: E402
from monarch_portal.request_handler import RequestHandler  # noqa: E402
from monarch_portal.startup import Startup  # noqa: E402
from monarch_portal.sub_path import SubPath  # noqa: E402

look_seldom()

application = SubPath(Startup(BodyLimit(RequestHandler())))
