// What the unmodified SDK of E2B says of a sandbox's network: node network.mjs FOLDER PACKAGE URL..., with E2B_API_KEY,
// E2B_API_URL and E2B_SANDBOX_URL. Prints for each sandbox what a request for each URL was answered with, as JSON.
import assert from 'node:assert/strict'
import { webcrypto } from 'node:crypto'
import { pathToFileURL } from 'node:url'

globalThis.crypto ??= webcrypto
const [folder, name, ...urls] = process.argv.slice(2)
const { Sandbox } = await import(pathToFileURL(`${folder}/node_modules/${name}/dist/index.mjs`))
const asked = async (sbx) => {
  const line = urls.map((u) => `curl -s -m 60 -o /dev/null -w '%{http_code}\\n' ${u}`).join('; ')
  return (await sbx.commands.run(`{ ${line}; } || true`)).stdout.trim().split('\n')
}
const cases = {
  all: {},
  names: { network: { allowOut: ['api.test', '*.deep.test'] } },
  idiom: { network: { allowOut: ['api.test'], denyOut: ({ allTraffic }) => [allTraffic] } },
  ruled: { network: { rules: { 'API.test': [] }, allowOut: ({ rules }) => [...rules.keys()], denyOut: ['0.0.0.0/0'] } },
  denied: { network: { denyOut: ['api.test', '*.b.deep.test'] } },
  wins: { network: { allowOut: ['*.deep.test', 'api.test'], denyOut: ['api.test'] } },
  range: { network: { denyOut: ['127.0.0.0/8'] } },
  within: { network: { allowOut: ['127.0.0.1', '10.0.0.0/8'] } },
  without: { network: { allowOut: ['10.0.0.0/8'] } },
  mixed: { network: { allowOut: ['10.0.0.0/8', 'api.test'] } },
  wider: { network: { allowOut: ['never.test', '0.0.0.0/0'] } },
  none: { allowInternetAccess: false },
  nothing: { network: { denyOut: ({ allTraffic }) => [allTraffic] } },
}
const got = {}
for (const [what, options] of Object.entries(cases)) {
  const sbx = await Sandbox.create({ ...options, timeoutMs: 120_000 })
  got[what] = await asked(sbx)
  if (what === 'names') {
    const info = await sbx.getInfo()
    assert.deepEqual(info.network?.allowOut, ['api.test', '*.deep.test'])
    await sbx.pause()
    got.resumed = await asked(await Sandbox.connect(sbx.sandboxId))
  }
  await sbx.kill()
}
const words = {}
for (const [what, network] of Object.entries({
  transform: { rules: { 'api.test': [{ transform: { headers: { Authorization: 'x' } } }] }, allowOut: ['api.test'] },
  proxy: { egressProxy: { address: 'proxy.test:1080' } },
  star: { allowOut: ['*'] },
  bits: { denyOut: ['10.0.0.1/8'] },
  text: { allowOut: ['http://api.test/'] },
  inner: { allowOut: ['api.*.test'] },
})) {
  const refused = await Sandbox.create({ network }).catch((e) => e)
  assert.ok(refused instanceof Error, what)
  words[what] = refused.message
}
console.log(JSON.stringify({ got, words }))
