// What the page says about the connection that the log comes over.
import { report } from "../connection.js";

const WORDS = { live: "Live", lost: "Connection lost, reconnecting", ended: "Log complete" };

export function showConnection(element, page, state) {
  element.dataset.state = state;
  element.textContent = WORDS[state];
  report("log", state === "lost");
  // While the stream reports changes, they need not be fetched.
  if (state === "lost") delete page.dataset.quiet;
  else page.dataset.quiet = "";
}
