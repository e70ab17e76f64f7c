// A small application is made in a sandbox as an agent would make one: node vibe.mjs FOLDER PACKAGE REGISTRY. Files are written,
// a package is installed from the registry, by way of the gateway, it is built and tested, kept, ended, begun again with what was
// kept, and goes on: by then with another package.
import assert from 'node:assert/strict'
import { pathToFileURL } from 'node:url'

const { Sandbox, CommandExitError } =
  await import(pathToFileURL(`${process.argv[2]}/node_modules/${process.argv[3]}/dist/index.mjs`))
const cwd = '/workspace/app'
const test = (words) => `import test from 'node:test'
import assert from 'node:assert'
import { say } from '../dist/app.mjs'
test('it says so', () => assert.equal(say('hello'), '${words}'))
`
let sbx = await Sandbox.create({ timeoutMs: 600_000 })
const run = (line) => sbx.commands.run(line, { cwd, timeoutMs: 300_000 })

await sbx.files.write([
  { path: 'app/package.json', data: JSON.stringify({ name: 'app', version: '1.0.0', type: 'module',
    scripts: { build: 'node build.mjs', test: 'node --test' } }) },
  { path: 'app/src/app.mjs', data: `import { shout } from 'shout'\nexport const say = (text) => shout(text)\n` },
  { path: 'app/build.mjs', data: `import { cpSync } from 'node:fs'\ncpSync('src', 'dist', { recursive: true })\nconsole.log('built')\n` },
  { path: 'app/test/app.test.mjs', data: test('HELLO!') },
])
await sbx.files.write('app/.npmrc', `registry=${process.argv[4]}\naudit=false\nfund=false\nupdate-notifier=false\n`)
const built = []
let told
const all = new Promise((resolve) => { told = resolve })
const watch = await sbx.files.watchDir('app', (e) => { if (built.push(e.name) && e.name === 'last') told() }, { recursive: true, timeoutMs: 0 })
await run('npm install shout@1.0.0')
assert.match((await run('npm run build')).stdout, /built/)
assert.match((await run('npm test')).stdout, /pass 1/)
await sbx.files.write('app/last', '')
await all
assert.ok(built.includes('dist/app.mjs') && built.includes('node_modules/shout/package.json'), String(built))
await watch.stop()
const { snapshotId } = await sbx.createSnapshot()
assert.equal(await sbx.kill(), true)

sbx = await Sandbox.create(snapshotId, { timeoutMs: 600_000 })
assert.match((await run('npm test')).stdout, /pass 1/)
await sbx.files.write('app/test/app.test.mjs', test('HELLO!!'))
const failed = await run('npm test').catch((e) => e)
assert.ok(failed instanceof CommandExitError && /fail 1/.test(failed.stdout), String(failed))
await run('npm install mark@1.0.0')
await sbx.files.write('app/src/app.mjs', `import { shout } from 'shout'\nimport { mark } from 'mark'\nexport const say = (text) => mark(shout(text))\n`)
const mine = process.argv[4].replace('https:', '') + ':_authToken' // npm asks for one before it tries
const published = await run(`npm publish --tag mine --${mine}=none`).catch((e) => e)
assert.ok(published instanceof CommandExitError && /Packages are published by the release job/.test(published.stderr), String(published.stderr))
await run('npm run build')
assert.match((await run('npm test')).stdout, /pass 1/)
assert.equal(await Sandbox.deleteSnapshot(snapshotId), true)
assert.equal(await sbx.kill(), true)
console.log('ok vibe')
