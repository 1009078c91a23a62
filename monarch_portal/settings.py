"""Every setting, read once from the environment. Without any: the embedded set-up of a checkout."""

import re
import secrets
import sys
from pathlib import Path
from urllib.parse import urlsplit

from monarch_portal import static_files
from monarch_portal.celery_settings import celery_settings
from monarch_portal.database_settings import connection_options, pool_options
from monarch_portal.embedded.home import Home
from monarch_portal.env import (
    database_from_url,
    env_bool,
    env_choice,
    env_int,
    env_list,
    env_seconds,
    env_secret,
    env_str,
)
from monarch_portal.log_store_settings import log_days, log_store, s3_storage
from monarch_portal.logging_config import logging_config

BASE_DIR = Path(__file__).resolve().parent.parent
LOOPBACK_HOSTS = ["127.0.0.1", "localhost", "[::1]"]

# --- The installation -----------------------------------------------------------------------
_home = Home.of_checkout(BASE_DIR)
_database_url = env_secret("DATABASE_URL")
MPORTAL_HOME = _home.path
MPORTAL_PORTAL_FILE = _home.portal_file
# Without a server named from outside, the portal brings its own and listens on loopback only.
MPORTAL_EMBEDDED = not _database_url
MPORTAL_EMBEDDED_REDIS = not env_secret("REDIS_URL")
# The embedded portal knows where it listens, and MPORTAL_URL may be the CLI's, naming another one.
MPORTAL_URL = env_str("MPORTAL_URL") if not MPORTAL_EMBEDDED else _home.url
MPORTAL_URL = MPORTAL_URL.rstrip("/") or "http://127.0.0.1:8000"
# The path below which a proxy publishes the portal; links, cookies and static files follow it.
_sub_path = urlsplit(MPORTAL_URL).path
FORCE_SCRIPT_NAME = _sub_path or None
# It runs users' code on this very machine, so only the embedded set-up has it by default.
MPORTAL_LOCAL_BACKEND = env_bool("MPORTAL_LOCAL_BACKEND", default=MPORTAL_EMBEDDED)
MPORTAL_LOCAL_NODES = env_int("MPORTAL_LOCAL_NODES", 16)
# New work is refused below it; of a small disk a twentieth must do. 0: never.
# Less than nothing: what fits the disk, see jobs/ground/disk_space.py.
MPORTAL_DISK_RESERVE_MB = env_int("MPORTAL_DISK_RESERVE_MB", -1)
# SkyPilot: "auto" (once a cloud was added), "on" or "off"; and its server, if others run one.
MPORTAL_SKYPILOT = env_choice("MPORTAL_SKYPILOT", ("auto", "on", "off"))
MPORTAL_SKYPILOT_ENDPOINT = env_str("MPORTAL_SKYPILOT_ENDPOINT").rstrip("/")
MPORTAL_SKYPILOT_TOKEN = env_secret("MPORTAL_SKYPILOT_TOKEN")
# How lines come from SkyPilot's nodes: "push", "pull", or "auto" (push where a node can).
MPORTAL_SKYPILOT_CARRIER = env_str("MPORTAL_SKYPILOT_CARRIER", "auto")
# Under which address nodes reach the portal, where that is not MPORTAL_URL.
MPORTAL_NODE_URL = env_str("MPORTAL_NODE_URL", MPORTAL_URL)
# The most that any job gets in this installation; a project may have less. None, 0: no limit.
MPORTAL_MAX_DURATION_S = env_seconds("MPORTAL_MAX_DURATION")
MPORTAL_MAX_IDLE_MINUTES = env_int("MPORTAL_MAX_IDLE_MINUTES", 0)
# How long a cluster may exist that the rows have as terminated, or that no job needs any more.
MPORTAL_ORPHAN_GRACE_MINUTES = env_int("MPORTAL_ORPHAN_GRACE_MINUTES", 10)
# How often nodes report processor, memory and GPUs. 0: never.
MPORTAL_METRICS_SECONDS = env_int("MPORTAL_METRICS_SECONDS", 10)
# Jobs that one job's program has submitted and that have not ended.
MPORTAL_MAX_CHILDREN = env_int("MPORTAL_MAX_CHILDREN", 100)
# A documentation site of one's own; empty: the pages that are shipped with the portal.
MPORTAL_DOCS_URL = env_str("MPORTAL_DOCS_URL").strip()
REDIS_URL = env_secret("REDIS_URL") or _home.redis.url
# How a person runs manage.py here: pages name commands that work when they are copied.
_python = Path(sys.executable)
_python = _python.relative_to(BASE_DIR) if _python.is_relative_to(BASE_DIR) else Path("python")
MPORTAL_MANAGE = env_str("MPORTAL_MANAGE", f"{_python} manage.py")

# --- Django ---------------------------------------------------------------------------------
DEBUG = env_bool("DEBUG")
INSTALLED_APPS = [
    # First: its commands replace those of others that have the same name.
    "jobs",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.postgres",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_htmx",
]
MIDDLEWARE = [
    "jobs.api.base.request_ids.request_id_middleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "monarch_portal.middleware.CompressedAnswers",
    "monarch_portal.middleware.fixed_headers",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]
ROOT_URLCONF = "monarch_portal.urls"
ASGI_APPLICATION = "monarch_portal.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
            "builtins": [
                "jobs.web.base.template_tags",
                "jobs.web.base.time_tags",
                "jobs.web.base.terms",
            ],
        },
    }
]
AUTH_USER_MODEL = "jobs.User"
CSRF_FAILURE_VIEW = "jobs.web.base.refused_forms.refused_form"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "web:sign_in"
LOGIN_REDIRECT_URL = "web:landing"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
APPEND_SLASH = False
STATIC_URL = f"{_sub_path}/static/"
# Collected files carry a hash of their content in their names: browsers keep them for ever.
_collected = None if DEBUG else static_files.collected()
STATIC_ROOT = str(_collected) if _collected else None
_static_storage = (
    "monarch_portal.collect_static.HashedStaticFiles"
    if _collected
    else "django.contrib.staticfiles.storage.StaticFilesStorage"
)
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": _static_storage},
    **s3_storage(),
}
WHITENOISE_USE_FINDERS = not _collected
WHITENOISE_AUTOREFRESH = DEBUG
WHITENOISE_ALLOW_ALL_ORIGINS = False
# Uploads are stored in files here, and sealed logs unless they go to S3.
MEDIA_ROOT = MPORTAL_HOME / "blobs"
MPORTAL_LOG_STORE = log_store(STORAGES)
# How long the log of an attempt is kept after its end. 0: for ever.
MPORTAL_LOG_DAYS = log_days()
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024
MPORTAL_UPLOAD_MAX_BYTES = env_int("MPORTAL_UPLOAD_MAX_BYTES", 512 * 1024 * 1024)
# Live streams that one web process serves, in all and to one user.
MPORTAL_STREAMS = env_int("MPORTAL_STREAMS", 1000)
MPORTAL_STREAMS_PER_USER = env_int("MPORTAL_STREAMS_PER_USER", 100)
# Processes that look for matches in logs, of one web process; they start when they are needed.
MPORTAL_SEARCHES = env_int("MPORTAL_SEARCHES", 2)
# Programs outside of jobs that are attached to workers, of one job and of one user.
MPORTAL_GATEWAY_PER_JOB = env_int("MPORTAL_GATEWAY_PER_JOB", 8)
MPORTAL_GATEWAY_PER_USER = env_int("MPORTAL_GATEWAY_PER_USER", 4)
# Megabytes a second of one user's sessions, and of one job's. 0: no limit.
MPORTAL_GATEWAY_MB_PER_S = env_int("MPORTAL_GATEWAY_MB_PER_S", 0)
# Where the gateway listens beside the socket through which web passes connections: "host:port".
MPORTAL_GATEWAY_LISTEN = env_str("MPORTAL_GATEWAY_LISTEN").strip()
# "host:port" at which other gateway processes reach this one.
MPORTAL_GATEWAY_INTERNAL = env_str("MPORTAL_GATEWAY_INTERNAL").strip()
MPORTAL_GATEWAY_SOCKET = _home.gateway_socket
# Failed tries to sign in, within five minutes: under one name, and from one address. 0: no limit.
MPORTAL_TRIES_PER_NAME = env_int("MPORTAL_TRIES_PER_NAME", 10)
MPORTAL_TRIES_PER_ADDRESS = env_int("MPORTAL_TRIES_PER_ADDRESS", 100)
LOGGING = logging_config(env_str("MPORTAL_LOG_LEVEL", "INFO"))

# --- Database -------------------------------------------------------------------------------
_database = database_from_url(_database_url or _home.postgres.url())
DATABASES = {"default": _database}
_database["OPTIONS"] = connection_options(_database["OPTIONS"])
# Requests and steps run in threads; the pool bounds what they hold, and holds nothing when idle.
_connections = env_int("MPORTAL_DATABASE_CONNECTIONS", 12)
if _connections:
    _database["OPTIONS"]["pool"] = pool_options(_connections)

# --- Background -----------------------------------------------------------------------------
globals().update(
    celery_settings(REDIS_URL, concurrency=env_int("MPORTAL_WORKER_THREADS", 6)),
)

# --- Security -------------------------------------------------------------------------------
# Production must name its key (Django refuses an empty one). The embedded portal's is made at its
# first start; a command run before that makes do with one that lasts as long as itself.
SECRET_KEY = env_secret("SECRET_KEY")
if not SECRET_KEY and MPORTAL_EMBEDDED:
    SECRET_KEY = _home.secret_key or secrets.token_urlsafe(50)
# What users' secrets are sealed with, newest first. None: the portal takes no secrets.
MPORTAL_SECRET_KEYS = [k.strip() for k in env_secret("MPORTAL_SECRET_KEYS").split(",") if k.strip()]
if not MPORTAL_SECRET_KEYS and MPORTAL_EMBEDDED:
    MPORTAL_SECRET_KEYS = _home.sealing_keys
_own_host = urlsplit(MPORTAL_URL).hostname or ""
_origin = MPORTAL_URL.removesuffix(_sub_path)
_https = MPORTAL_URL.startswith("https://")
_node_host = urlsplit(MPORTAL_NODE_URL).hostname or ""
_hosts = [*LOOPBACK_HOSTS, *env_list("ALLOWED_HOSTS", [_own_host]), _node_host]
ALLOWED_HOSTS = list(dict.fromkeys(_hosts))
CSRF_TRUSTED_ORIGINS = env_list("CSRF_TRUSTED_ORIGINS", [_origin] if _https else [])
SECURE_SSL_REDIRECT = env_bool("SECURE_SSL_REDIRECT", default=_https)
_health = re.escape(f"{_sub_path}/".lstrip("/"))
SECURE_REDIRECT_EXEMPT = [rf"^{_health}healthz$", rf"^{_health}readyz$"]
SECURE_HSTS_SECONDS = env_int("SECURE_HSTS_SECONDS", 30 * 24 * 3600 if _https else 0)
SECURE_HSTS_INCLUDE_SUBDOMAINS = _https
SECURE_REFERRER_POLICY = "same-origin"
# Set it only behind a proxy that strips this header from what clients send.
if env_bool("MPORTAL_BEHIND_PROXY"):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
# Preloading is a promise about the whole domain, which is not the portal's to make.
SILENCED_SYSTEM_CHECKS = [
    "security.W021",
]
# Browsers keep cookies per host, not per port: two portals on one machine need two names.
_cookie_suffix = f"_{_home.digest}" if MPORTAL_EMBEDDED else ""
SESSION_ENGINE = "jobs.models.user_session"
SESSION_COOKIE_NAME = f"mportal_session{_cookie_suffix}"
CSRF_COOKIE_NAME = f"mportal_csrf{_cookie_suffix}"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _https
# Other programs of the same host do not get them.
SESSION_COOKIE_PATH = CSRF_COOKIE_PATH = _sub_path or "/"
SESSION_COOKIE_AGE = 14 * 24 * 3600
X_FRAME_OPTIONS = "DENY"
# The same for every page: `monarch_portal.middleware` sends it.
CONTENT_SECURITY_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "manifest-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]
)

# --- REST -----------------------------------------------------------------------------------
# Authentication, permissions and errors stand in `jobs.api`, where no setting can open them.
REST_FRAMEWORK = {"DEFAULT_SCHEMA_CLASS": "jobs.api.base.schema.PortalSchema"}
SPECTACULAR_SETTINGS = {
    "TITLE": "Monarch portal",
    "DESCRIPTION": "Submit, watch and stop distributed PyTorch Monarch jobs.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVERS": [{"url": _sub_path}] if _sub_path else [],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "COMPONENT_SPLIT_REQUEST": True,
    "PREPROCESSING_HOOKS": ["jobs.api.described.with_functions"],
    "ENUM_NAME_OVERRIDES": {"ProjectStateEnum": "jobs.statuses.ProjectState"},
}
