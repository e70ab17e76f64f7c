// Signers from npm as a filter, for tests/differential/sign.py: a request a line in JSON, its Authorization a line.
// usage: node sign.js NODE_MODULES
const path = require("path");
const readline = require("readline");
const from = (name) => require(path.join(process.argv[2], name));
const { SignatureV4 } = from("@smithy/signature-v4");
const { Sha256 } = from("@aws-crypto/sha256-js");
const Tencent = from("tencentcloud-sdk-nodejs-common/tencentcloud/common/sign.js").default;

async function aws(r) {
  const signer = new SignatureV4({
    credentials: { accessKeyId: r.id, secretAccessKey: r.secret, sessionToken: r.token || undefined },
    region: r.region, service: r.service, sha256: Sha256, uriEscapePath: r.kind !== "s3", applyChecksum: r.kind === "s3",
  });
  const query = {};
  for (const [name, value] of r.query) query[name] = query[name] === undefined ? value : [].concat(query[name], value);
  const signed = await signer.sign(
    { method: r.method, protocol: "https:", hostname: r.host, path: r.path, query, headers: { ...r.headers, host: r.host },
      body: Buffer.from(r.body, "hex") },
    { signingDate: new Date(r.time * 1000) });
  return signed.headers;
}

function tencent(r) {
  const raw = r.query.map(([n, v]) => `${encodeURIComponent(n)}=${encodeURIComponent(v)}`).join("&");
  return { authorization: Tencent.sign3({
    method: r.method, url: `https://${r.host}${r.path}${raw ? "?" + raw : ""}`, payload: Buffer.from(r.body, "hex"),
    timestamp: r.time, service: r.service, secretId: r.id, secretKey: r.secret, headers: { "Content-Type": r.headers["content-type"] } }) };
}

(async () => {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const r = JSON.parse(line);
    process.stdout.write(JSON.stringify(r.kind === "tc3" ? tencent(r) : await aws(r)) + "\n");
  }
})();
