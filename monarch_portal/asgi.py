"""The ASGI application: HTTP and server-sent events."""

import os

from django.core.asgi import get_asgi_application

from jobs.api.body_limit import BodyLimit

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "monarch_portal.settings")

application = BodyLimit(get_asgi_application())
