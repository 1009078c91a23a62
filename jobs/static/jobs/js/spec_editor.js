// A form with a specification: its editor, checked while one types. `data-ready` of the form is what
// a valid text is; `data-single` says that it takes one specification, and not several.
import { bindEditor } from "./editor/editor.js";
import { bindValidation } from "./editor/validate.js";

const form = document.querySelector("form[data-validate]");
const { ready, single } = form.dataset;
bindValidation(form, bindEditor(form.querySelector(".editor")), ({ spec, summary }) =>
  single && spec === null ? { problem: single } : { ready, more: summary });
