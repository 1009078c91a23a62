// Sends a folder, packed here, or an archive, and shows the reference by which a job names it.
import { chosen, dropped, packed } from "./pack.js";

export function bindUpload(field, editor) {
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

  function offer(reference) {
    const use = document.createElement("button");
    Object.assign(use, { type: "button", className: "button small", textContent: "Use as workdir" });
    use.addEventListener("click", () => editor.change(withWorkdir(editor.area.value, reference)));
    const code = document.createElement("code");
    code.textContent = reference;
    state.replaceChildren("Stored as ", code, " ", use);
  }

  async function upload(name, prepare) {
    state.textContent = `Uploading ${name} …`;
    try {
      offer(await send(await prepare()));
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
    if (folder.files.length) await upload("the folder", () => packed(chosen(folder)));
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
    upload("what was dropped", async () => packed(await files));
  });
}

function withWorkdir(yaml, reference) {
  const line = `workdir: ${reference}`;
  if (/^workdir:.*$/m.test(yaml)) return yaml.replace(/^workdir:.*$/m, line);
  if (/^num_nodes:.*$/m.test(yaml)) return yaml.replace(/^(num_nodes:.*)$/m, `$1\n${line}`);
  return `${line}\n${yaml}`;
}
