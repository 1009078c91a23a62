// The submit page: editor, checking while one types, examples, form, upload.
import { bindEditor } from "./editor/editor.js";
import { bindValidation } from "./editor/validate.js";
import { bindDraft } from "./submit/draft.js";
import { bindExamples } from "./submit/examples.js";
import { bindPlan } from "./submit/plan.js";
import { bindSpecForm } from "./submit/spec_form.js";
import { bindEditorUpload } from "./submit/upload.js";

const form = document.getElementById("submit-form");
const editor = bindEditor(document.getElementById("editor"));
bindDraft(form, editor);
bindExamples(form, editor);
bindValidation(form, editor, ({ summary }) => ({ ready: "Ready to submit", more: summary }));
bindPlan(document.getElementById("plan"), editor);
const change = bindSpecForm(document.getElementById("spec-form"), editor, form);
bindEditorUpload(document.querySelector("[data-upload]"), editor, change, form);

// Two clicks on "Submit" are one job: the server knows the key of this visit.
document.getElementById("submit-key").value =
  Date.now().toString(36) + crypto.getRandomValues(new Uint32Array(4)).join("");
