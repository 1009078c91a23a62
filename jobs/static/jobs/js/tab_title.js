// The title and the icon of the browser tab show the status of the page's job.
const title = document.title;
const icon = document.querySelector("link[rel=icon]");

function show() {
  const badge = document.querySelector("#job-status .badge");
  if (!badge) return;
  const words = `${badge.textContent.trim().replace(/\s+/g, " ")} · ${title}`;
  const color = getComputedStyle(badge).color;
  const picture = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><circle cx="16" cy="16" r="14" fill="${color}"/></svg>`;
  const address = `data:image/svg+xml,${encodeURIComponent(picture)}`;
  if (document.title !== words) document.title = words;
  if (icon.href !== address) icon.href = address;
}

show();
document.addEventListener("portal:morphed", show);
