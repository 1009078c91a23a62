"""The portal's settings, pointed at the test session's own servers."""

import os

from tests.embedded_servers import SERVERS

os.environ["DATABASE_URL"] = SERVERS.postgres.url()
os.environ["REDIS_URL"] = SERVERS.redis.url
os.environ["MPORTAL_HOME"] = str(SERVERS.root / "home")
# Each test's connection is its own, and must be gone when its database is dropped.
os.environ["MPORTAL_DATABASE_CONNECTIONS"] = "0"
os.environ["SECRET_KEY"] = "only-for-tests-" * 4

from monarch_portal.settings import *  # noqa: F403

# Each test runs in its own transaction, and may wait in it.
DATABASES["default"]["OPTIONS"]["options"] += " -c idle_in_transaction_session_timeout=60000"  # noqa: F405
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
MPORTAL_LOCAL_BACKEND = True
# How full this machine's disk is does not matter to the tests.
MPORTAL_DISK_RESERVE_MB = 0
# Static files from their sources, whether or not a portal of this checkout has collected them.
STATIC_ROOT = None
STORAGES["staticfiles"] = {  # noqa: F405
    "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
}
WHITENOISE_USE_FINDERS = True
# Hints of the code under test go nowhere; a test of the broker makes an app of its own.
CELERY_BROKER_URL = "memory://"
