"""The ASGI application: HTTP and server-sent events."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "monarch_portal.settings")

application = get_asgi_application()
