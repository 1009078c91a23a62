// Watches jobs on every page once the user of this browser has chosen notifications.
import { isWanted, readChoice } from "./store.js";

const address = document.querySelector("[data-notices]")?.dataset.notices;
let isBegun = false;

export async function beginNotices() {
  if (isBegun || !address || !isWanted(readChoice())) return;
  isBegun = true;
  const { watch } = await import("./watch.js");
  watch(address);
}

beginNotices();
