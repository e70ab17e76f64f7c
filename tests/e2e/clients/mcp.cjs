// A server of the Model Context Protocol, made of its own SDK, without sessions: one tool, of whose calls each is a line of a file.
// usage: node mcp.cjs NODE_MODULES CONFIG, a file in JSON: { port, cert, key, log }
const fs = require("fs"), https = require("https"), path = require("path");
const sdk = name => require(path.join(process.argv[2], "@modelcontextprotocol/sdk/dist/cjs", name));
const { Server } = sdk("server/index.js"), { StreamableHTTPServerTransport } = sdk("server/streamableHttp.js");
const { CallToolRequestSchema, ListToolsRequestSchema } = sdk("types.js");

const config = JSON.parse(fs.readFileSync(process.argv[3], "utf8"));
const inputSchema = { type: "object", properties: { amount: { type: "number" } } };

async function serve(request, response) {
  if (request.method !== "POST") { // nothing that it would say unasked
    response.writeHead(405).end();
    return;
  }
  const server = new Server({ name: "shop", version: "1.0.0" }, { capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [{ name: "pay", inputSchema }] }));
  server.setRequestHandler(CallToolRequestSchema, ({ params }) => {
    fs.appendFileSync(config.log, JSON.stringify(params) + "\n");
    return { content: [{ type: "text", text: `paid ${params.arguments.amount}` }] };
  });
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  await server.connect(transport);
  await transport.handleRequest(request, response);
}

const tls = { cert: fs.readFileSync(config.cert), key: fs.readFileSync(config.key) };
https.createServer(tls, (request, response) => serve(request, response).catch(why => response.destroy(why)))
  .listen(config.port, "127.0.0.1", () => console.log("ready"));
