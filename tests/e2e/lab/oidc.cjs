// npm's oidc-provider, as it is, for clients that ask with credentials of their own (and introspection, so that a test can ask what
// a token is). usage: node oidc.cjs NODE_MODULES CONFIG, a file in JSON: { issuer, port, cert, key, clients, scopes, ttl }
const fs = require("fs"), https = require("https"), path = require("path"), { pathToFileURL } = require("url");

(async () => {
  const { default: Provider } = await import(pathToFileURL(path.join(process.argv[2], "oidc-provider/lib/index.js")));
  const config = JSON.parse(fs.readFileSync(process.argv[3], "utf8"));
  const provider = new Provider(config.issuer, {
    clients: config.clients.map(client => ({ grant_types: ["client_credentials"], redirect_uris: [], response_types: [], ...client })),
    features: { clientCredentials: { enabled: true }, introspection: { enabled: true }, devInteractions: { enabled: false } },
    scopes: config.scopes,
    ttl: { ClientCredentials: config.ttl },
  });
  const tls = { cert: fs.readFileSync(config.cert), key: fs.readFileSync(config.key) };
  https.createServer(tls, provider.callback()).listen(config.port, "127.0.0.1", () => console.log("ready"));
})();
