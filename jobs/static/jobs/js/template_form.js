// The form of a template: an upload fills the parameter of its work directory.
import { bindUpload } from "./submit/upload.js";

const field = document.querySelector("[data-upload]");
const input = document.getElementById(field.dataset.fills);
bindUpload(field, (reference) => {
  input.value = reference;
  input.focus();
});
