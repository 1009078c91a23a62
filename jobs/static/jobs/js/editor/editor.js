// The editor of a page: a text area with numbered lines, in whose place CodeMirror comes at the
// first sign of interest. The text area stays the field that is sent and that other modules read.
import { bindArea } from "./area.js";

export function bindEditor(frame) {
  const area = frame.querySelector("textarea");
  const plain = bindArea(area, frame.querySelector(".gutter"));
  let shown = plain;
  let errors = [];
  // A character that an input method is still making would be lost with its field.
  let composing = false;
  area.addEventListener("compositionstart", () => (composing = true));
  area.addEventListener("compositionend", () => (composing = false));

  async function load() {
    try {
      const [library, { openCode }] = await Promise.all([
        import(frame.dataset.library), import("./code.js"),
      ]);
      if (composing)
        await new Promise((done) => area.addEventListener("compositionend", done, { once: true }));
      shown = openCode(library, frame, area);
      shown.mark(errors);
    } catch {
      // The text area goes on working.
    }
  }

  if (frame.dataset.library) atFirstInterest(frame, load);
  return {
    area,
    // `errors`: as the server reports them.
    mark(found) {
      errors = found;
      shown.mark(found);
    },
    replace: (text) => shown.replace(text),
    change: (text) => shown.change(text),
    showLine: (line) => shown.showLine(line),
  };
}

function atFirstInterest(frame, act) {
  const signs = ["focusin", "pointerover"];
  const begin = () => {
    signs.forEach((sign) => frame.removeEventListener(sign, begin));
    act();
  };
  signs.forEach((sign) => frame.addEventListener(sign, begin));
}
