"""The ASGI application: HTTP and server-sent events."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "monarch_portal.settings")

_django = get_asgi_application()

# It asks the database who sends a large body, and models are there from now on.
from jobs.api.body_limit import BodyLimit  # noqa: E402

application = BodyLimit(_django)
