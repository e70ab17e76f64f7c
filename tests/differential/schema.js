// ajv as a filter, for tests/differential/schema.py: {"schema", "instance"} a line, {"valid", "errors": [[path, keyword]]} a line.
// usage: node schema.js NODE_MODULES
const path = require("path");
const readline = require("readline");
const from = (name) => require(path.join(process.argv[2], name)).default;
const Ajv2020 = from("ajv/dist/2020.js"), Ajv07 = from("ajv");
const fresh = (Ajv) => new Ajv({ strict: false, validateFormats: false, allErrors: true, logger: false, multipleOfPrecision: 9,
  validateSchema: false });

let ajv = [fresh(Ajv2020), fresh(Ajv07)], used = 0, had = "", check = null;
(async () => {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const { schema, instance } = JSON.parse(line);
    let answer;
    try {
      const text = JSON.stringify(schema);
      if (text !== had) {
        if (++used % 100 === 0 || schema.$id) ajv = [fresh(Ajv2020), fresh(Ajv07)];
        check = ajv[String(schema.$schema).includes("draft-07") ? 1 : 0].compile(schema);
        had = text;
      }
      const valid = check(instance);
      answer = { valid, errors: (check.errors || []).map((e) => [e.instancePath, e.keyword]) };
    } catch (e) {
      had = "";
      answer = { refused: String(e.message) };
    }
    process.stdout.write(JSON.stringify(answer) + "\n");
  }
})();
