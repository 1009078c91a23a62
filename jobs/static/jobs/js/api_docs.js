// The API's page: Swagger UI from its own static files, started from here because the content
// security policy allows no inline script.

const place = document.getElementById("api-docs");

// A signed-in reader tries operations with their session, which takes the CSRF token.
function withCsrf(request) {
  if (new URL(request.url, location.href).origin === location.origin) {
    request.headers["X-CSRFToken"] = place.dataset.csrf;
  }
  return request;
}

window.SwaggerUIBundle({
  url: place.dataset.openapi,
  domNode: place,
  deepLinking: true,
  docExpansion: "list",
  requestInterceptor: withCsrf,
  validatorUrl: null,
});
