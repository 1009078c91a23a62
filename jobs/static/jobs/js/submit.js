// The submit page: editor, checking while one types, examples, form, upload.
import { bindDraft } from "./submit/draft.js";
import { bindEditor } from "./submit/editor.js";
import { bindPlan } from "./submit/plan.js";
import { bindSpecForm } from "./submit/spec_form.js";
import { bindUpload } from "./submit/upload.js";
import { bindValidation } from "./submit/validate.js";

const form = document.getElementById("submit-form");
const editor = bindEditor(document.getElementById("source"), document.getElementById("gutter"));
bindDraft(form, editor);
bindValidation(form, editor);
bindPlan(document.getElementById("plan"), editor);
const change = bindSpecForm(document.getElementById("spec-form"), editor);
bindUpload(document.querySelector("[data-upload]"), editor, change);

// Two clicks on "Submit" are one job: the server knows the key of this visit.
document.getElementById("submit-key").value =
  Date.now().toString(36) + crypto.getRandomValues(new Uint32Array(4)).join("");

for (const example of document.querySelectorAll("[data-yaml]"))
  example.addEventListener("click", (event) => {
    event.preventDefault();
    editor.replace(example.dataset.yaml);
  });
