// The page where the user of this browser chooses notifications.
import { beginNotices } from "./begin.js";
import { requestPermission } from "./permission.js";
import { readChoice, writeChoice } from "./store.js";

const own = document.querySelector("[data-notify-own]");
const said = document.querySelector("[data-notify-said]");
const list = document.querySelector("[data-notify-watched]");

function change(edit) {
  const choice = readChoice();
  edit(choice);
  writeChoice(choice);
  show();
}

function row([id, { name, href }]) {
  const [item, link, button] = ["li", "a", "button"].map((tag) => document.createElement(tag));
  link.href = href;
  link.textContent = `${name} #${id}`;
  Object.assign(button, { type: "button", className: "button small", textContent: "Stop watching" });
  button.setAttribute("aria-label", `Stop watching ${name} #${id}`);
  button.addEventListener("click", () => {
    change((choice) => delete choice.watched[id]);
    // The button was removed: the focus goes on to the next one.
    (list.querySelector("button") ?? own).focus();
  });
  item.append(link, " ", button);
  return item;
}

function show() {
  const choice = readChoice();
  const watched = Object.entries(choice.watched);
  own.checked = choice.own;
  list.replaceChildren(...watched.map(row));
  document.querySelector("[data-notify-none]").hidden = watched.length > 0;
}

own.addEventListener("change", async () => {
  const wanted = own.checked;
  said.textContent = wanted ? await requestPermission() : "";
  change((choice) => {
    choice.own = wanted && !said.textContent;
    choice.isBegun = false;
  });
  beginNotices();
});

show();
addEventListener("storage", show);
