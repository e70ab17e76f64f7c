// undici's parser of forms with files, which is Node's from version 20 on, with the input and output of multipart.c.
"use strict";
const { Response } = require(process.argv[2] + "/node_modules/undici");
const hex = (bytes) => " " + Buffer.from(bytes).toString("hex");

async function read(line) {
  const [type, body] = line.split(" ").map((part) => Buffer.from(part, "hex"));
  let form;
  try {
    form = await new Response(body, { headers: { "Content-Type": type.toString("latin1") } }).formData();
  } catch {
    return "refused";
  }
  let out = "";
  for (const [name, value] of form) {
    if (typeof value === "string") out += `field${hex(name)}${hex(value)};`;
    else out += `file${hex(name)}${hex(value.name)}${hex(value.type)}${hex(await value.arrayBuffer())};`;
  }
  return out;
}

(async () => {
  const lines = require("fs").readFileSync(0, "utf8").split("\n").slice(0, -1);
  const out = [];
  for (const line of lines) out.push(await read(line));
  process.stdout.write(out.map((one) => one + "\n").join(""));
})();
