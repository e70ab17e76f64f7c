// npm's oidc-provider, as it is, for clients that ask with credentials of their own (and introspection, so that a test can ask what
// a token is), and for people who sign in. usage: node oidc.cjs NODE_MODULES CONFIG, a file in JSON:
// { issuer, port, cert, key, clients, scopes, ttl, people: { NAME: claims } }. Whoever is at the browser says who they are in
// a form, a GET of /login/UID?name=NAME: nobody's password is asked, and who has no name is told no.
const fs = require("fs"), https = require("https"), path = require("path"), { pathToFileURL } = require("url");

(async () => {
  const { default: Provider } = await import(pathToFileURL(path.join(process.argv[2], "oidc-provider/lib/index.js")));
  const config = JSON.parse(fs.readFileSync(process.argv[3], "utf8")), people = config.people || {};
  const provider = new Provider(config.issuer, {
    clients: config.clients.map(client => ({ grant_types: ["client_credentials"], redirect_uris: [], response_types: [], ...client })),
    features: { clientCredentials: { enabled: true }, introspection: { enabled: true }, devInteractions: { enabled: false } },
    scopes: config.scopes,
    ttl: { ClientCredentials: config.ttl },
    claims: { openid: ["sub"], profile: ["preferred_username"], email: ["email", "email_verified"] },
    conformIdTokenClaims: false, // what the scopes name stands in the ID token
    pkce: { methods: ["S256"], required: () => true },
    findAccount: (ctx, name) => people[name] && { accountId: name, claims: () => ({ sub: name, ...people[name] }) },
    interactions: { url: (ctx, interaction) => `/login/${interaction.uid}` },
    loadExistingGrant: async ctx => { // nobody is asked whether the page may know who they are
      const grant = new ctx.oidc.provider.Grant({ clientId: ctx.oidc.client.clientId, accountId: ctx.oidc.session.accountId });
      grant.addOIDCScope("openid profile email");
      await grant.save();
      return grant;
    },
  });
  const tls = { cert: fs.readFileSync(config.cert), key: fs.readFileSync(config.key) }, answer = provider.callback();
  https.createServer(tls, (request, response) => {
    const url = new URL(request.url, config.issuer), name = url.searchParams.get("name");
    if (!url.pathname.startsWith("/login/"))
      return answer(request, response);
    if (name === null)
      return response.writeHead(200, { "Content-Type": "text/html" }).end("<!doctype html><title>Login</title><form><input name=name><button>It is me</button></form>");
    const result = name ? { login: { accountId: name } } : { error: "access_denied" };
    provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false }).catch(e => response.writeHead(500).end(String(e)));
  }).listen(config.port, "127.0.0.1", () => console.log("ready"));
})();
