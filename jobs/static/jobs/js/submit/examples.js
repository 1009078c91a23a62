// The examples above the editor replace its text. What was there before comes back with Undo, until
// something else is typed.
import { offerUndo } from "./note.js";

export function bindExamples(form, editor) {
  const links = [...form.querySelectorAll("[data-yaml]")];
  const isExample = (text) => links.some((link) => link.dataset.yaml === text);
  for (const link of links)
    link.addEventListener("click", (event) => {
      event.preventDefault();
      const before = editor.area.value;
      editor.replace(link.dataset.yaml);
      if (before.trim() && !isExample(before))
        offerUndo(form, editor, before, `Your text was replaced by the example "${link.textContent}".`);
    });
}
