// What a JSON Schema says of a key: which keys and values fit, and the words that explain it.
function alternatives(schema) {
  return [schema, ...(schema.anyOf ?? []).flatMap(alternatives)];
}

function below(schema, segment) {
  if (segment === 0) return schema.items;
  const free = schema.additionalProperties;
  return schema.properties?.[segment] ?? (typeof free === "object" ? free : undefined);
}

// The schemas that a value at `path` may follow. `x-names` is that of the nearest key around it.
export function schemasAt(root, path) {
  let found = alternatives(root);
  for (const segment of path)
    found = found.flatMap((schema) => {
      const next = below(schema, segment);
      if (!next) return [];
      const names = next["x-names"] ?? schema["x-names"];
      return alternatives(next).map((each) => (names ? { "x-names": names, ...each } : each));
    });
  return found;
}

const types = (schema) => [schema.type ?? []].flat();

// [name, schema] of the keys that a mapping may have.
export function keysOf(schemas) {
  const found = new Map();
  for (const schema of schemas)
    for (const [name, each] of Object.entries(schema.properties ?? {}))
      if (!found.get(name)?.description) found.set(name, each);
  return [...found];
}

// Whether its free keys are names, and of which kind.
export function namedKeysOf(schemas) {
  return schemas.find((each) => each.additionalProperties && each["x-names"])?.["x-names"];
}

// [value, what it is] of the values that can be suggested; `names`: lists by kind; `withExamples`:
// where there are no others, the default and the examples.
export function valuesOf(schemas, names, withExamples) {
  const choices = schemas.flatMap((each) => each["x-choices"] ?? []);
  const flags = schemas.some((each) => types(each).includes("boolean")) ? ["true", "false"] : [];
  const kind = choices.length ? undefined : schemas.find((each) => each["x-names"])?.["x-names"];
  const known = (kind && names[kind]) ?? [];
  const said = schemas.flatMap((each) => [
    ...("default" in each ? [[each.default, "default"]] : []),
    ...(each.examples ?? []).map((example) => [example, "example"]),
  ]);
  const plain = said.filter(([value]) => value !== "" && typeof value !== "object");
  const all = [
    ...choices.map((value) => [value, ""]),
    ...flags.map((value) => [value, ""]),
    ...known.map((value) => [value, kind === "gpus" ? "GPU" : kind.replace(/s$/, "")]),
    ...(withExamples && !choices.length && !flags.length && !known.length ? plain : []),
  ];
  return [...new Map(all.map(([value, about]) => [String(value), about]))];
}

function rangeOf({ minimum, maximum, exclusiveMinimum }) {
  const least = minimum ?? exclusiveMinimum;
  const above = exclusiveMinimum !== undefined && minimum === undefined ? "above" : "from";
  if (least === undefined) return maximum === undefined ? "" : ` up to ${maximum}`;
  return ` ${above} ${least}${maximum === undefined ? "" : ` to ${maximum}`}`;
}

const WORDS = {
  integer: "whole number", number: "number", string: "text", boolean: "true or false",
  array: "list", object: "mapping",
};

// The kind of value, such as "whole number from 1 to 64".
export function kindOf(schemas) {
  const found = schemas.flatMap((each) => {
    if (each["x-choices"]) return [each["x-choices"].join(", ")];
    return types(each).filter((type) => type !== "null").map((type) => WORDS[type] + rangeOf(each));
  });
  return [...new Set(found)].join(", or ");
}

const written = (value) => (typeof value === "string" ? value : JSON.stringify(value));

// [term, text] of the facts about a key.
export function factsOf(schemas) {
  const facts = [["Value", kindOf(schemas)]];
  const first = (key) => schemas.find((each) => key in each)?.[key];
  const standard = first("default");
  const isEmpty = standard === undefined || ["", "{}", "[]"].includes(written(standard));
  if (!isEmpty) facts.push(["Default", written(standard)]);
  if (first("examples")) facts.push(["Example", written(first("examples")[0])]);
  if (first("x-tier") === "admin") facts.push(["For", "administrators of the installation"]);
  return facts.filter(([, text]) => text);
}

export function isMapping(schemas) {
  const kinds = schemas.flatMap(types).filter((type) => type !== "null");
  return kinds.length > 0 && kinds.every((type) => type === "object" || type === "array");
}
