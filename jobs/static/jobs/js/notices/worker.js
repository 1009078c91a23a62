// The service worker that shows notifications: Chrome on Android shows no others. It handles no
// requests of pages. A click on a notification leads to the page of its job.
addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(openJob(event.notification.data.href));
});

async function openJob(href) {
  const tabs = await clients.matchAll({ type: "window", includeUncontrolled: true });
  const isOfJob = ({ url }) => `${new URL(url).pathname}/`.startsWith(`${href}/`);
  const tab = tabs.find(isOfJob);
  if (tab) await tab.focus();
  else await clients.openWindow(href);
}
