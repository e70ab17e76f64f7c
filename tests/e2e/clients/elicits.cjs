// A client of the Model Context Protocol of 2026-07-28, made of its own package, whose user sits at standard input.
// usage: node elicits.cjs NODE_MODULES URL CAPABILITIES; then a line each: "pay AMOUNT", and "accept", "decline", "cancel", or of a
// form "deny WORDS" or "wait WORDS", to what was asked. It prints "asked MODE URL MESSAGE", and "paid ..." or "failed ...".
const path = require("path"), readline = require("readline");
const from = name => require(path.join(process.argv[2], name));
const { Client, StreamableHTTPClientTransport } = from("@modelcontextprotocol/client");
const { EnvHttpProxyAgent, setGlobalDispatcher } = from("undici");

setGlobalDispatcher(new EnvHttpProxyAgent());
const [, , , url, capabilities] = process.argv;
const client = new Client({ name: "agent", version: "1" },
  { capabilities: JSON.parse(capabilities), versionNegotiation: { mode: "auto" }, inputRequired: { maxRounds: 100 } });
let answers = null;
client.setRequestHandler("elicitation/create", ({ params }) => new Promise(resolve => {
  console.log("asked", params.mode, params.url ?? Object.keys(params.requestedSchema.properties).join(), params.message);
  answers = (action, ...words) => resolve(
    ["deny", "wait"].includes(action) ? { action: "accept", content: { answer: action, reason: words.join(" ") } }
      : action === "accept" && params.mode === "form" ? { action, content: {} } : { action });
}));

async function pay(amount) {
  const result = await client.callTool({ name: "pay", arguments: { amount } });
  console.log(result.content[0].text);
}

(async () => {
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  console.log("speaks", client.getNegotiatedProtocolVersion(), (await client.listTools()).tools.map(tool => tool.name).join());
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [word, ...rest] = line.split(" ");
    if (word === "pay")
      pay(Number(rest[0])).catch(e => console.log("failed", e.message));
    else
      answers(word, ...rest);
  }
  process.exit();
})().catch(e => { console.log("failed", e); process.exit(1); });
