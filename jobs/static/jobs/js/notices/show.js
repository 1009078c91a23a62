// Shows a notification: by the service worker, or by the page where the browser has none.
const address = document.querySelector("[data-notices-worker]")?.dataset.noticesWorker;

export async function showNotice(title, { href, ...options }) {
  const registration = await activeWorker().catch(() => null);
  if (registration) return registration.showNotification(title, { ...options, data: { href } });
  const note = new Notification(title, options);
  note.onclick = () => {
    focus();
    location.assign(href);
    note.close();
  };
}

// Only an active worker shows notifications; its pages need not be those of its scope.
async function activeWorker() {
  const registration = await navigator.serviceWorker.register(address);
  const worker = registration.installing ?? registration.waiting;
  if (registration.active || !worker) return registration;
  await new Promise((resolve) => {
    worker.addEventListener("statechange", () => worker.state === "activated" && resolve());
  });
  return registration;
}
