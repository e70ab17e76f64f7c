// All that the unmodified SDK of E2B asks of the dock, one operation after the other: node sdk.mjs FOLDER PACKAGE, with the
// package in the folder's node_modules. E2B_API_KEY, E2B_API_URL and E2B_SANDBOX_URL say where the dock is. Prints a line for
// each that went well; the first that does not ends it.
import assert from 'node:assert/strict'
import { pathToFileURL } from 'node:url'

// As a module, which Node 18 can read too: what the other form of it requires is one.
const { Sandbox, CommandExitError, NotFoundError, TimeoutError } =
  await import(pathToFileURL(`${process.argv[2]}/node_modules/${process.argv[3]}/dist/index.mjs`))
const ok = (name) => console.log(`ok ${name}`)
const signalled = () => { let set; const it = new Promise((resolve) => { set = resolve }); return [it, set] }

const sbx = await Sandbox.create({ metadata: { user: 'a b', run: '1' }, envs: { COLOR: 'blue' }, timeoutMs: 120_000 })
ok('create')
assert.equal(await sbx.isRunning(), true)
ok('health')
const other = await Sandbox.create({ metadata: { user: 'c' } })

const info = await sbx.getInfo()
assert.equal(info.sandboxId, sbx.sandboxId)
assert.deepEqual(info.metadata, { user: 'a b', run: '1' })
assert.equal(info.state, 'running')
ok('getInfo')

const pages = Sandbox.list({ limit: 1 })
const seen = []
while (pages.hasNext) seen.push(...await pages.nextItems())
assert.deepEqual(new Set(seen.map((s) => s.sandboxId)), new Set([sbx.sandboxId, other.sandboxId]))
assert.equal(seen.length, 2)
const found = await Sandbox.list({ query: { metadata: { user: 'a b' }, state: ['running'] } }).nextItems()
assert.deepEqual(found.map((s) => s.sandboxId), [sbx.sandboxId])
ok('list')

await sbx.setTimeout(300_000)
const later = await sbx.getInfo()
assert.ok(later.endAt > info.endAt)
ok('setTimeout')

const written = await sbx.files.write('dir/hello.txt', 'hello')
assert.equal(written.path, '/workspace/dir/hello.txt')
assert.equal(await sbx.files.read('dir/hello.txt'), 'hello')
const big = new Uint8Array(3_000_000).map((_, i) => (i * 7 + (i >> 8)) & 255)
await sbx.files.write('big', big.buffer)
assert.deepEqual(await sbx.files.read('big', { format: 'bytes' }), big)
await sbx.files.write('empty', '')
assert.equal(await sbx.files.read('empty'), '')
assert.equal((await sbx.files.write([{ path: 'm/1', data: 'one' }, { path: 'm/2', data: '--two\r\n--' }])).length, 2)
assert.equal(await sbx.files.read('m/2'), '--two\r\n--')
await assert.rejects(sbx.files.read('nothing'), NotFoundError)
ok('files.write')
ok('files.read')
const stream = await sbx.files.read('big', { format: 'stream' })
let streamed = 0
for await (const piece of stream) streamed += piece.length
assert.equal(streamed, big.length)
ok('files.stream')

assert.deepEqual((await sbx.files.list('/workspace')).map((e) => [e.name, e.type]),
  [['big', 'file'], ['dir', 'dir'], ['empty', 'file'], ['m', 'dir']])
assert.deepEqual((await sbx.files.list('.', { depth: 2 })).map((e) => e.path).sort(), ['/workspace/big', '/workspace/dir',
  '/workspace/dir/hello.txt', '/workspace/empty', '/workspace/m', '/workspace/m/1', '/workspace/m/2'])
ok('files.list')
assert.equal(await sbx.files.exists('dir/hello.txt'), true)
assert.equal(await sbx.files.exists('dir/none'), false)
ok('files.exists')
const stat = await sbx.files.getInfo('dir/hello.txt')
assert.equal(stat.size, 5)
assert.equal(stat.type, 'file')
assert.ok(Math.abs(stat.modifiedTime - Date.now()) < 3_600_000)
ok('files.getInfo')
assert.equal(await sbx.files.makeDir('a/b/c'), true)
assert.equal(await sbx.files.makeDir('a/b/c'), false)
ok('files.makeDir')
assert.equal((await sbx.files.rename('dir/hello.txt', 'a/moved')).path, '/workspace/a/moved')
assert.equal(await sbx.files.exists('dir/hello.txt'), false)
ok('files.rename')
await sbx.files.remove('a')
assert.equal(await sbx.files.exists('a'), false)
ok('files.remove')
await assert.rejects(sbx.files.watchDir('.', () => {}), /does not watch folders yet/)
ok('files.watchDir says that it is not there')

const said = await sbx.commands.run('echo out; echo err >&2; echo $COLOR $SIZE; pwd', { envs: { SIZE: '7' } })
assert.deepEqual([said.stdout, said.stderr, said.exitCode], ['out\nblue 7\n/workspace\n', 'err\n', 0])
const failed = await sbx.commands.run('exit 3').catch((e) => e)
assert.ok(failed instanceof CommandExitError)
assert.equal(failed.exitCode, 3)
await assert.rejects(sbx.commands.run('sleep 60', { timeoutMs: 1000 }), TimeoutError)
ok('commands.run')
const pieces = []
const many = await sbx.commands.run('for i in $(seq 300000); do echo line $i; done', { onStdout: (s) => pieces.push(s) })
assert.equal(many.stdout.length, pieces.join('').length)
assert.ok(many.stdout.endsWith('line 300000\n'))
ok('commands.stream')

const [first, heardFirst] = signalled()
const cat = await sbx.commands.run('cat', { background: true, stdin: true, onStdout: heardFirst })
const listed = await sbx.commands.list()
assert.deepEqual(listed.map((p) => [p.pid, p.cmd, p.args]), [[cat.pid, '/bin/bash', ['-l', '-c', 'cat']]])
ok('commands.list')
await sbx.commands.sendStdin(cat.pid, 'to you\n')
assert.equal(await first, 'to you\n')
ok('commands.sendStdin')
await cat.disconnect()
const [second, heardSecond] = signalled()
const again = await sbx.commands.connect(cat.pid, { onStdout: heardSecond })
await again.sendStdin('again\n')
assert.equal(await second, 'again\n')
ok('commands.connect')
await again.sendStdin('x'.repeat(300_000))
await again.closeStdin()
assert.equal((await again.wait()).exitCode, 0)
ok('commands.closeStdin')
assert.deepEqual(await sbx.commands.list(), [])
const sleep = await sbx.commands.run('sleep 600', { background: true })
assert.equal(await sbx.commands.kill(sleep.pid), true)
const killed = await sleep.wait().catch((e) => e)
assert.equal(killed.exitCode, -1)
assert.equal(await sbx.commands.kill(sleep.pid), false)
ok('commands.kill')

const screen = []
const [ready, isReady] = signalled()
const [wide, isWide] = signalled()
const text = () => Buffer.concat(screen).toString()
const pty = await sbx.pty.create({ cols: 80, rows: 24, timeoutMs: 0, onData: (d) => {
  screen.push(Buffer.from(d))
  if (/[\r\n]24 80/.test(text())) isReady()
  if (/[\r\n]40 100/.test(text())) isWide()
} })
await sbx.pty.sendInput(pty.pid, Buffer.from('stty size\n'))
await ready
await sbx.pty.resize(pty.pid, { cols: 100, rows: 40 })
await sbx.pty.sendInput(pty.pid, Buffer.from('stty size\n'))
await wide
assert.equal(await sbx.pty.kill(pty.pid), true)
ok('pty')

const metrics = await sbx.getMetrics()
assert.ok(metrics[0].memTotal > 0 && metrics[0].memUsed > 0 && metrics[0].diskTotal > 0)
ok('getMetrics')

await sbx.files.write('kept', 'over a pause')
assert.ok(await sbx.pause())
assert.equal((await sbx.getInfo()).state, 'paused')
assert.equal(await Sandbox.pause(sbx.sandboxId), false)
ok('pause')
const resumed = await Sandbox.connect(sbx.sandboxId)
assert.equal(await resumed.files.read('kept'), 'over a pause')
assert.equal((await resumed.commands.run('cat kept')).stdout, 'over a pause')
assert.equal((await sbx.commands.run('echo still')).stdout, 'still\n')
ok('connect')

await assert.rejects(resumed.createSnapshot(), /does not do that yet/)
await assert.rejects(resumed.fork(), /does not do that yet/)
ok('snapshot and fork say that they are not there')

assert.equal(await other.kill(), true)
assert.equal(await sbx.kill(), true)
assert.equal(await sbx.kill(), false)
assert.equal(await sbx.isRunning(), false)
await assert.rejects(Sandbox.connect(sbx.sandboxId), /not found/)
assert.deepEqual(await Sandbox.list().nextItems(), [])
ok('kill')
