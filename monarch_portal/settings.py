"""Every setting, read once from the environment."""

import os
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent
SECRET_KEY = os.environ.get("SECRET_KEY", "not-yet")
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.postgres",
    "django.contrib.staticfiles",
    "rest_framework",
    "jobs",
]
AUTH_USER_MODEL = "jobs.User"
DATABASES = {"default": {"ENGINE": "django.db.backends.postgresql", "NAME": "mportal"}}
USE_TZ = True
