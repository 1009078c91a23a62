// Packs chosen or dropped files as a tar.gz, in the browser. Version control and caches stay out.
const LEFT_OUT = /(^|\/)(\.git|\.venv|__pycache__|node_modules)(\/|$)/;
const BLOCK = 512;
const encoder = new TextEncoder();

function octal(value, length) {
  return value.toString(8).padStart(length - 1, "0") + "\0";
}

// ustar: a name of up to 100 bytes, and before it a folder of up to 155.
function header(path, file) {
  let prefix = "";
  let name = path;
  while (encoder.encode(name).length > 100 && name.includes("/")) {
    const cut = name.indexOf("/") + 1;
    prefix += name.slice(0, cut);
    name = name.slice(cut);
  }
  prefix = prefix.replace(/\/$/, "");
  if (encoder.encode(name).length > 100 || encoder.encode(prefix).length > 155)
    throw new Error(`the path ${path} is too long.`);
  const block = new Uint8Array(BLOCK);
  const put = (text, offset) => block.set(encoder.encode(text), offset);
  put(name, 0);
  put(octal(0o644, 8), 100);
  put(octal(0, 8), 108);
  put(octal(0, 8), 116);
  put(octal(file.size, 12), 124);
  put(octal(Math.floor(file.lastModified / 1000), 12), 136);
  put("        ", 148);
  put("0ustar\u000000", 156);
  put(prefix, 345);
  put(octal(block.reduce((sum, byte) => sum + byte, 0), 7) + " ", 148);
  return block;
}

// `files`: [path, File] of each. Returns a Blob.
export async function packed(files) {
  const kept = files.filter(([path]) => !LEFT_OUT.test(path)).sort(([a], [b]) => (a < b ? -1 : 1));
  if (!kept.length) throw new Error("there are no files in it.");
  const parts = kept.flatMap(([path, file]) => [
    header(path, file), file, new Uint8Array((BLOCK - (file.size % BLOCK)) % BLOCK),
  ]);
  const tar = new Blob([...parts, new Uint8Array(2 * BLOCK)]);
  return new Response(tar.stream().pipeThrough(new CompressionStream("gzip"))).blob();
}

// The files of an <input webkitdirectory>, without the name of the folder itself.
export function chosen(input) {
  return [...input.files].map((file) => [file.webkitRelativePath.replace(/^[^/]*\//, ""), file]);
}

// The files that were dropped: of one folder without its name, of several as they are.
export async function dropped(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry()).filter(Boolean);
  const isOne = entries.length === 1 && entries[0].isDirectory;
  const found = await Promise.all(entries.map((entry) => filesOf(entry, isOne ? "" : entry.name)));
  return found.flat();
}

async function filesOf(entry, path) {
  if (LEFT_OUT.test(path)) return [];
  if (entry.isFile) return [[path, await new Promise((done, fail) => entry.file(done, fail))]];
  const reader = entry.createReader();
  const inside = [];
  // A reader returns a hundred at a time, and nothing after the last.
  for (;;) {
    const some = await new Promise((done, fail) => reader.readEntries(done, fail));
    if (!some.length) break;
    inside.push(...some);
  }
  const below = inside.map((each) => filesOf(each, path ? `${path}/${each.name}` : each.name));
  return (await Promise.all(below)).flat();
}
