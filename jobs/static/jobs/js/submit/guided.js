// The small form that writes the YAML. It only ever replaces the whole text, which can be undone.
const PLAIN = /^[A-Za-z_./][\w ./@:+-]*$/;
const WORDS = /^(?:true|false|yes|no|on|off|null|~)$/i;

// A scalar as YAML reads it back unchanged.
export function scalar(text) {
  const plain = PLAIN.test(text) && !WORDS.test(text) && !/: |\s$|:$/.test(text);
  return plain ? text : JSON.stringify(text);
}

function block(key, text) {
  const lines = text.replace(/\s+$/, "").split("\n");
  if (lines.length === 1 && !/^\s/.test(text)) return [`${key}: ${scalar(lines[0])}`, ""];
  // The digit says how deep the block is, should its first line begin with blanks.
  const header = /^\s/.test(text) ? "|2" : "|";
  return [`${key}: ${header}`, ...lines.map((line) => line && `  ${line}`), ""];
}

export function yamlOf({ name, nodes, setup, run, meshes }) {
  const lines = [`name: ${scalar(name || "my-job")}`, `num_nodes: ${nodes}`, ""];
  if (setup.trim()) lines.push(...block("setup", setup));
  lines.push(...block("run", run.trim() ? run : "echo hello"));
  if (meshes.length) {
    const inside = meshes.map(([mesh, hosts]) => `${scalar(mesh)}: ${hosts}`).join(", ");
    lines.push("portal:", `  meshes: {${inside}}`, "");
  }
  return lines.join("\n");
}

function field(name, value, label, more = {}) {
  const input = document.createElement("input");
  Object.assign(input, { name, value, ariaLabel: label, autocomplete: "off", ...more });
  return input;
}

function meshRow(count) {
  const row = document.createElement("div");
  row.className = "mesh-row";
  const drop = document.createElement("button");
  Object.assign(drop, { type: "button", className: "button quiet small", textContent: "Remove" });
  drop.addEventListener("click", () => row.remove());
  row.append(
    field("mesh", count ? `workers${count + 1}` : "workers", "Name of the mesh"),
    field("hosts", 1, "Hosts of the mesh", { type: "number", min: 1, max: 1024 }),
    drop,
  );
  return row;
}

export function bindGuidedForm(form, editor) {
  const rows = document.getElementById("mesh-rows");
  document.getElementById("add-mesh").addEventListener("click", () => {
    const row = meshRow(rows.childElementCount);
    rows.append(row);
    row.querySelector("input").select();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const data = new FormData(form);
    const hosts = data.getAll("hosts").map(Number);
    const meshes = data.getAll("mesh").map((mesh, i) => [mesh.trim(), hosts[i] || 1]);
    const named = meshes.filter(([mesh]) => mesh);
    const needed = named.reduce((sum, [, size]) => sum + size, 0);
    const nodes = Math.max(Number(data.get("nodes")) || 1, needed);
    form.elements.nodes.value = nodes;
    editor.replace(
      yamlOf({
        name: data.get("name").trim(), nodes, setup: data.get("setup"), run: data.get("run"), meshes: named,
      }),
    );
  });
}
