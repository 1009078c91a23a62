// Sends a folder, packed here, or an archive, and shows the reference by which a job names it.
import { offerUndo } from "./note.js";
import { chosen, dropped, packed } from "./pack.js";

const MOST_BYTES = 256 * 1024;

// The upload of the submit page. `change` sends a change of the form to the server, which writes the
// text; `form` submits that.
export function bindEditorUpload(field, editor, change, form) {
  const use = (value) => change({ path: "workdir", value });

  async function fill(names, values) {
    const before = editor.area.value;
    const problem = await change(values);
    if (!problem && editor.area.value !== before)
      offerUndo(form, editor, before, `Your text was replaced from ${names}.`);
  }

  bindUpload(field, use, fill);
}

// `use` takes the reference of what was uploaded, and may return why it did not; `fill`, if any, its project files too.
export function bindUpload(field, use, fill) {
  const archive = field.querySelector("#archive");
  const folder = field.querySelector("#folder");
  const state = field.querySelector("[role=status]");
  const token = document.querySelector("[name=csrfmiddlewaretoken]").value;

  async function send(file) {
    const response = await fetch(field.dataset.upload, {
      method: "POST",
      headers: { "Content-Type": "application/gzip", "X-CSRFToken": token },
      body: file,
    });
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.detail ?? answer.title);
    return answer.reference;
  }

  function button(textContent, click) {
    const made = document.createElement("button");
    Object.assign(made, { type: "button", className: "button small", textContent });
    made.addEventListener("click", click);
    return made;
  }

  // `own`: the texts of the project files of the folder, by their names.
  function offer(reference, own) {
    const code = document.createElement("code");
    code.textContent = reference;
    const problem = document.createElement("span");
    const take = button("Use as workdir", async () => (problem.textContent = (await use(reference)) ?? ""));
    state.replaceChildren("Stored as ", code, " ", take, " ", problem);
    const names = Object.keys(own).join(" and ");
    if (names && fill)
      state.append(" ", button(`Fill the form from ${names}`, () => fill(names, { workdir: reference, ...own })));
  }

  async function upload(name, prepare, files = async () => []) {
    state.textContent = `Uploading ${name} …`;
    try {
      offer(await send(await prepare()), await projectFiles(await files()));
    } catch (error) {
      state.textContent = `Upload failed: ${error.message}`;
    }
  }

  archive.addEventListener("change", async () => {
    const file = archive.files[0];
    if (file) await upload(file.name, () => file);
    archive.value = "";
  });
  folder.addEventListener("change", async () => {
    if (folder.files.length) {
      const files = chosen(folder);
      await upload("the folder", () => packed(files), () => files);
    }
    folder.value = "";
  });
  for (const name of ["dragover", "dragleave", "drop"])
    field.addEventListener(name, (event) => {
      event.preventDefault();
      field.classList.toggle("over", name === "dragover");
    });
  field.addEventListener("drop", (event) => {
    // The browser forgets what was dropped when this call ends.
    const files = dropped(event.dataTransfer);
    upload("what was dropped", async () => packed(await files), () => files);
  });
}

async function textOf(path, file) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    throw new Error(`${path} is not UTF-8. Save the file as UTF-8.`);
  }
}

// The files in which a folder describes its job; pyproject.toml only with a table for it.
async function projectFiles(files) {
  const found = {};
  for (const [path, file] of files) {
    if (!["portal.yaml", "pyproject.toml"].includes(path) || file.size > MOST_BYTES) continue;
    const text = await textOf(path, file);
    if (path === "portal.yaml" || /^\s*\[tool\.mportal[\].]/m.test(text)) found[path] = text;
  }
  return found;
}
