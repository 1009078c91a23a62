"""The URLs of the portal: REST below /api/v1/, health beside it, pages at the root."""

from django.urls import include, path

from monarch_portal import health

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("api/v1/", include("jobs.api.urls")),
    path("", include("jobs.web.urls")),
]

handler400 = "monarch_portal.failures.bad_request"
handler404 = "monarch_portal.failures.not_found"
handler500 = "monarch_portal.failures.server_error"
