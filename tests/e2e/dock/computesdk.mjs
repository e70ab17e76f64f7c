// ComputeSDK's provider for E2B against the dock: node computesdk.mjs FOLDER-WITH-NODE_MODULES @computesdk/e2b
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'

const { e2b } = createRequire(process.argv[2] + '/')(process.argv[3])
const provider = e2b({ apiKey: process.env.E2B_API_KEY })
const sandbox = await provider.sandbox.create({ timeout: 60_000 })
const result = await sandbox.runCommand('node -v')
assert.equal(result.exitCode, 0)
assert.equal(result.stdout.trim(), process.version)
await sandbox.filesystem.writeFile('/workspace/a.txt', 'hello')
assert.equal(await sandbox.filesystem.readFile('/workspace/a.txt'), 'hello')
await sandbox.destroy()
console.log('ok computesdk')
