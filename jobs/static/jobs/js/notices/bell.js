// The bell of a job's page: notify of the start and the end of this job.
import { beginNotices } from "./begin.js";
import { requestPermission } from "./permission.js";
import { MOST_WATCHED, readChoice, writeChoice } from "./store.js";

const FULL = `This browser watches ${MOST_WATCHED} jobs, the most. Stop watching one under Notifications.`;
let problem = "";

function show() {
  const bell = document.querySelector("[data-notify]");
  if (!bell) return;
  bell.hidden = false;
  bell.setAttribute("aria-pressed", String(bell.dataset.notify in readChoice().watched));
  const said = document.querySelector("[data-notify-said]");
  if (said.textContent !== problem) said.textContent = problem;
}

document.addEventListener("click", async (event) => {
  const bell = event.target.closest("[data-notify]");
  if (!bell) return;
  const { notify: id, name, phase } = bell.dataset;
  const isOn = bell.getAttribute("aria-pressed") === "true";
  problem = isOn ? "" : await requestPermission();
  const choice = readChoice();
  if (!isOn && Object.keys(choice.watched).length >= MOST_WATCHED) problem ||= FULL;
  if (isOn) delete choice.watched[id];
  else if (!problem) {
    choice.watched[id] = { name, href: location.pathname.replace(/(\/jobs\/\d+).*/, "$1") };
    // What is known of jobs that are not watched grows old.
    if (!choice.own || !(id in choice.known)) choice.known[id] = phase;
  }
  writeChoice(choice);
  beginNotices();
  show();
});

show();
document.addEventListener("portal:morphed", show);
