"""The life cycle as a small model, and the portal held against it over REST while parts break."""

import os

import django
from django.apps import apps

# Scripts are replayed without pytest too; the model knows the portal's words, not its data.
if not apps.ready:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "monarch_portal.settings")
    django.setup()
