// The reference implementation of GraphQL (npm graphql), with the input and output of graphql.c. What is said of a document that has a
// rule of validation against it which ours reads too (fragments that are there, and no circle; one of each name): "refused".
"use strict";
const { parse, validate, Kind, buildSchema, UniqueOperationNamesRule, LoneAnonymousOperationRule, UniqueFragmentNamesRule,
  KnownFragmentNamesRule, NoFragmentCyclesRule, UniqueVariableNamesRule } = require("graphql");
const rules = [UniqueOperationNamesRule, LoneAnonymousOperationRule, UniqueFragmentNamesRule, KnownFragmentNamesRule, NoFragmentCyclesRule,
  UniqueVariableNamesRule];
const schema = buildSchema("type Query { a: Int }");
const hex = (text) => Buffer.from(text, "utf8").toString("hex");

function value(v) {
  switch (v.kind) {
    case Kind.VARIABLE: return "$" + hex(v.name.value);
    case Kind.NULL: return "null";
    case Kind.BOOLEAN: return String(v.value);
    case Kind.INT: case Kind.FLOAT: return "#" + hex(v.value);
    case Kind.STRING: case Kind.ENUM: return "'" + hex(v.value);
    case Kind.LIST: return "[" + v.values.map((one) => value(one) + ",").join("") + "]";
    default: return "{" + pairs(v.fields) + "}";
  }
}
const pairs = (list) => list.map((one) => one.name.value + ":" + value(one.value) + ",").join("");

function selections(set, fragments) {
  return set.selections.map((s) => {
    if (s.kind === Kind.FIELD) return " " + s.name.value + (s.arguments.length ? "{" + pairs(s.arguments) + "}" : "");
    return selections(s.kind === Kind.INLINE_FRAGMENT ? s.selectionSet : fragments[s.name.value].selectionSet, fragments);
  }).join("");
}

function read(text) {
  let document;
  try {
    document = parse(text, { noLocation: true });
  } catch {
    return "refused";
  }
  if (document.definitions.some((d) => d.kind !== Kind.OPERATION_DEFINITION && d.kind !== Kind.FRAGMENT_DEFINITION)) return "refused";
  if (validate(schema, document, rules).length) return "refused";
  const fragments = {};
  for (const d of document.definitions) if (d.kind === Kind.FRAGMENT_DEFINITION) fragments[d.name.value] = d;
  return document.definitions.filter((d) => d.kind === Kind.OPERATION_DEFINITION).map((d) => {
    const variables = [...d.variableDefinitions].reverse().map((v) => " $" + v.variable.name.value + (v.defaultValue ? value(v.defaultValue) : "")).join("");
    return `${d.operation} ${d.name ? d.name.value : ""}${variables}${selections(d.selectionSet, fragments)};`;
  }).join("");
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const lines = require("fs").readFileSync(0, "utf8").split("\n").slice(0, -1);
process.stdout.write(lines.map((line) => {
  let text;
  try {
    text = decoder.decode(Buffer.from(line, "hex"));
  } catch {
    return "refused\n";
  }
  return read(text) + "\n";
}).join(""));
