// The page that saves a template: its editor, checked while one types.
import { bindEditor } from "./editor/editor.js";
import { bindValidation } from "./editor/validate.js";

const form = document.getElementById("template-form");
bindValidation(form, bindEditor(form.querySelector(".editor")), () => ["Ready to save", ""]);
