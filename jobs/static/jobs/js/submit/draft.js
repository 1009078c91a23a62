// Keeps what was typed until it has become a job: no reload, closed tab or ended session loses it.
// It is stored in this browser only, for each project and user, and is never sent by itself.
import { when } from "../clock.js";
import { account } from "../notices/store.js";
import { offerUndo, showNote } from "./note.js";

const PREFIX = "draft:";
const KEPT_MS = 7 * 24 * 3600 * 1000;

function stored(key, draft) {
  try {
    if (draft === undefined) return JSON.parse(localStorage.getItem(key));
    if (draft === null) localStorage.removeItem(key);
    else localStorage.setItem(key, JSON.stringify(draft));
  } catch {
    // A browser that keeps nothing still submits jobs.
  }
  return null;
}

function keys() {
  try {
    return Object.keys(localStorage).filter((one) => one.startsWith(PREFIX));
  } catch {
    return [];
  }
}

function offer(form, draft, { restore, discard }) {
  const lines = draft.text.trim().split("\n").length;
  const words = `A draft of ${lines} line${lines > 1 ? "s" : ""} from ${when(draft.at)} was not submitted.`;
  showNote(form, words, [["Restore draft", "", restore], ["Discard", "quiet", discard]]);
}

export function bindDraft(form, editor) {
  const key = `${PREFIX}${form.dataset.draft}`;
  const { area } = editor;
  const examples = [...form.querySelectorAll("[data-yaml]")].map((one) => one.dataset.yaml);
  const isOwn = (text) => text.trim() && text !== area.defaultValue && !examples.includes(text);
  const keep = (more = {}) => stored(key, { text: area.value, at: Date.now(), ...more });
  const before = stored(key);
  // What the server has just refused is in the editor already.
  if (before?.text && before.text !== area.value)
    offer(form, before, {
      restore: () => {
        const replaced = area.value;
        editor.replace(before.text);
        offerUndo(form, editor, replaced, "Your draft was restored.");
      },
      discard: () => stored(key, null),
    });
  area.addEventListener("input", () => isOwn(area.value) && keep());
  form.addEventListener("submit", () => keep({ sent: location.pathname }));
}

// A user who lost the role is shown no form, but can still copy its text.
function showKept({ text }) {
  const panel = document.querySelector("main .panel");
  const words = document.createElement("p");
  words.textContent = "What you submitted was not accepted. It stays in this browser for 7 days:";
  const kept = document.createElement("pre");
  Object.assign(kept, { id: "kept-draft", textContent: text });
  const copy = document.createElement("button");
  Object.assign(copy, { type: "button", className: "button", textContent: "Copy" });
  copy.dataset.copy = kept.id;
  panel.append(words, kept, copy);
}

// On every page: a draft that was sent is forgotten where the answer led away from the form, as it
// does once there is a job. A page at the form's own address is a refusal, and so is the sign-in.
export function settleDrafts() {
  const from = document.referrer && new URL(document.referrer).pathname;
  for (const key of keys()) {
    const { sent, ...draft } = stored(key) ?? {};
    if (!draft.text || !(Date.now() - draft.at < KEPT_MS)) stored(key, null);
    else if (sent && sent === location.pathname) {
      stored(key, draft);
      const isOwn = account && key.endsWith(`/${account}`);
      if (isOwn && !document.getElementById("submit-form")) showKept(draft);
    }
    else if (sent && sent === from && account) stored(key, null);
  }
}
