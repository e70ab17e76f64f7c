// A sandbox that is idle, to E2B's unmodified SDK: node idle.mjs FOLDER PACKAGE before, which pauses one and prints what it is
// as JSON, and then node idle.mjs FOLDER PACKAGE after ID, when it is idle, which comes back to it.
import assert from 'node:assert/strict'
import { pathToFileURL } from 'node:url'

const { Sandbox } = await import(pathToFileURL(`${process.argv[2]}/node_modules/${process.argv[3]}/dist/index.mjs`))
if (process.argv[4] === 'before') {
  const sbx = await Sandbox.create({ metadata: { user: 'a b' }, envs: { COLOR: 'blue' }, timeoutMs: 600_000 })
  await sbx.files.write('kept', 'over a long pause')
  await sbx.commands.run('sleep 600', { background: true })
  await sbx.pause()
  console.log(JSON.stringify({ id: sbx.sandboxId, token: sbx.envdAccessToken }))
} else {
  const id = process.argv[5], pages = Sandbox.list({ query: { metadata: { user: 'a b' }, state: ['paused'] } })
  assert.deepEqual((await pages.nextItems()).map((one) => one.sandboxId), [id])
  const sbx = await Sandbox.connect(id)
  assert.equal(await sbx.files.read('kept'), 'over a long pause')
  assert.equal((await sbx.commands.run('echo $COLOR; pgrep sleep || echo none')).stdout, 'blue\nnone\n')
  const info = await sbx.getInfo()
  assert.deepEqual([info.state, info.metadata], ['running', { user: 'a b' }])
  assert.ok(info.endAt - Date.now() > 300_000)
  console.log(JSON.stringify({ id: sbx.sandboxId, token: sbx.envdAccessToken }))
}
