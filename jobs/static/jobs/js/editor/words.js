// Completion and explanations of the editor, from the portal's JSON Schema and its names.
import { positionOf, keyAt, siblingsOf } from "./position.js";
import { codeSpans, element } from "./prose.js";
import { factsOf, isMapping, keysOf, kindOf, namedKeysOf, schemasAt, valuesOf } from "./schema.js";

const WORD = /^[\w.-]*$/;
const PLAIN = /^[A-Za-z_][\w./ +:@-]*$|^\d+(\.\d+)?$/;
const AMBIGUOUS = /:\s|\s#|:$|^(true|false|yes|no|on|off|null)$/i;

// `isTemplate`: the text begins with a template's header.
export function wordsOf(address, isTemplate) {
  let request;

  async function load() {
    request ??= fetch(address).then((answer) => {
      if (!answer.ok) throw new Error(answer.status);
      return answer.json();
    });
    try {
      return await request;
    } catch {
      // The next one tries again.
      request = undefined;
      return null;
    }
  }

  const schemaOf = (words, part) => (isTemplate && part === 0 ? words.header : words.job);

  async function complete(context) {
    const { doc } = context.state;
    const at = positionOf(doc, context.pos);
    const typed = at ? context.state.sliceDoc(at.from, context.pos) : "";
    // An empty line offers its keys on request alone.
    if (!at || (at.wants === "key" && !typed && !context.explicit)) return null;
    const words = await load();
    if (!words || context.aborted) return null;
    const options = optionsAt(context, at, schemaOf(words, at.part), words.names);
    return options.length ? { from: at.from, options, validFor: WORD } : null;
  }

  async function explain(view, pos) {
    const at = keyAt(view.state.doc, pos);
    const words = at && (await load());
    const schemas = words ? schemasAt(schemaOf(words, at.part), at.path) : [];
    const about = schemas.find((each) => each.description)?.description;
    if (!about) return null;
    return { pos: at.from, end: at.to, above: true, create: () => ({ dom: explanation(at.path.at(-1), about, schemas) }) };
  }

  return { complete, explain, load };
}

function optionsAt({ state: { doc }, pos, explicit }, at, schema, names) {
  if (at.wants === "parameter") return parametersOf(doc).map((label) => ({ label, detail: "parameter" }));
  const schemas = schemasAt(schema, at.path);
  if (at.wants === "value") return values(schemas, names, explicit);
  const line = doc.lineAt(pos);
  const used = at.flow ? new Set() : siblingsOf(doc, line.number, at.column);
  const hasColon = /^[\w.-]*\s*:/.test(doc.sliceString(pos, line.to));
  const keys = keysOf(schemas).filter(([name]) => !used.has(name));
  const made = keys.map(([name, each], i) => keyOption(name, each, { at, hasColon, boost: -i }));
  const kind = namedKeysOf(schemas);
  const named = (names[kind] ?? []).map((label) => ({ label, apply: hasColon ? label : `${label}: ` }));
  return [...made, ...named, ...(at.path.at(-1) === 0 && !made.length ? values(schemas, names, explicit) : [])];
}

function keyOption(name, schema, { at, hasColon, boost }) {
  const schemas = schemasAt({ properties: { it: schema } }, ["it"]);
  const isDeep = !at.flow && isMapping(schemas);
  const after = isDeep ? `:\n${" ".repeat((at.column ?? 0) + 2)}` : ": ";
  return {
    label: name,
    detail: kindOf(schemas),
    info: () => explanation(name, schema.description ?? "", schemas),
    apply: hasColon ? name : name + after,
    boost: Math.max(boost, -99),
  };
}

function values(schemas, names, explicit) {
  return valuesOf(schemas, names, explicit).map(([label, detail], i) => ({
    label,
    detail,
    apply: PLAIN.test(label) && (!AMBIGUOUS.test(label) || !isText(schemas)) ? label : JSON.stringify(label),
    boost: Math.max(-i, -99),
  }));
}

const isText = (schemas) => !schemas.some((each) => [each.type ?? []].flat().includes("boolean"));

// The parameters that the header of a template names.
function parametersOf(doc) {
  const found = [];
  let inside = -1;
  for (let number = 1; number <= doc.lines; number++) {
    const { text } = doc.line(number);
    if (number > 1 && /^---(\s|$)/.test(text)) break;
    const [, indent, key] = /^( *)([\w-]+)\s*:/.exec(text) ?? [];
    if (key === undefined) continue;
    if (indent.length === 0) inside = key === "parameters" ? 0 : -1;
    else if (inside === 0) inside = indent.length;
    if (inside > 0 && indent.length === inside) found.push(key);
  }
  return found;
}

function explanation(name, about, schemas) {
  const made = element("div", "explanation");
  made.append(element("strong", "mono", name), codeSpans(about));
  const list = element("dl");
  for (const [term, text] of factsOf(schemas)) list.append(element("dt", "", term), element("dd", "", text));
  made.append(list);
  return made;
}
