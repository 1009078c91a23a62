// Sends a packed folder and shows the reference by which a job names it.
export function bindUpload(field, editor) {
  const input = field.querySelector("input");
  const state = field.querySelector("[role=status]");
  const token = document.querySelector("[name=csrfmiddlewaretoken]").value;

  async function send(file) {
    state.textContent = `Uploading ${file.name} …`;
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
    use.addEventListener("click", () => editor.replace(withWorkdir(editor.area.value, reference)));
    const code = document.createElement("code");
    code.textContent = reference;
    state.replaceChildren("Stored as ", code, " ", use);
  }

  input.addEventListener("change", async () => {
    const file = input.files[0];
    if (!file) return;
    try {
      offer(await send(file));
    } catch (error) {
      state.textContent = `Upload failed: ${error.message}`;
    } finally {
      input.value = "";
    }
  });
}

function withWorkdir(yaml, reference) {
  const line = `workdir: ${reference}`;
  if (/^workdir:.*$/m.test(yaml)) return yaml.replace(/^workdir:.*$/m, line);
  if (/^num_nodes:.*$/m.test(yaml)) return yaml.replace(/^(num_nodes:.*)$/m, `$1\n${line}`);
  return `${line}\n${yaml}`;
}
