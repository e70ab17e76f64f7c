// A server of the Model Context Protocol of 2026-07-28, made of its own package: one tool, of whose calls each is a line of a file,
// as the server was given it.
// usage: node mcp_rounds.cjs NODE_MODULES CONFIG, a file in JSON: { port, cert, key, log }
const fs = require("fs"), https = require("https"), path = require("path");
const { McpServer, createMcpHandler } = require(path.join(process.argv[2], "@modelcontextprotocol/server"));
const { z } = require(path.join(process.argv[2], "zod"));

const config = JSON.parse(fs.readFileSync(process.argv[3], "utf8"));
const handler = createMcpHandler(() => {
  const server = new McpServer({ name: "shop", version: "1.0.0" });
  server.registerTool("pay", { inputSchema: z.object({ amount: z.number() }) },
    ({ amount }) => ({ content: [{ type: "text", text: `paid ${amount}` }] }));
  return server;
}, { legacy: "reject" });

async function serve(request, response) {
  const pieces = [];
  for await (const piece of request)
    pieces.push(piece);
  const body = Buffer.concat(pieces);
  if (body.includes('"tools/call"'))
    fs.appendFileSync(config.log, body + "\n");
  const answer = await handler.fetch(new Request(`https://${request.headers.host}${request.url}`,
    { method: request.method, headers: request.headers, body: pieces.length ? body : undefined }));
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  response.end(Buffer.from(await answer.arrayBuffer()));
}

const tls = { cert: fs.readFileSync(config.cert), key: fs.readFileSync(config.key) };
https.createServer(tls, (request, response) => serve(request, response).catch(why => response.destroy(why)))
  .listen(config.port, "127.0.0.1", () => console.log("ready"));
