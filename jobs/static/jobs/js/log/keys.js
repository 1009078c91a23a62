// The keys of the log, while it is shown. `?` lists them.
import { bindKeys } from "../keys.js";

export function bindLogKeys(panel, { find, jump, showFirstError, zen }) {
  const press = (what) => panel.querySelector(what)?.click();
  bindKeys(panel, {
    "/": () => find.open(),
    f: () => find.open(),
    n: () => find.step(1),
    N: () => find.step(-1),
    G: jump,
    e: showFirstError,
    t: () => press("[data-toggle=times]"),
    w: () => press("[data-toggle=wrap]"),
    z: zen.toggle,
    Escape: zen.leave,
    "?": () => document.getElementById("log-keys").showModal(),
  });
}
