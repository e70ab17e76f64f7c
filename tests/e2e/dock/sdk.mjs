// All that the unmodified SDK of E2B asks of the dock, one operation after the other: node sdk.mjs FOLDER PACKAGE, with the
// package in the folder's node_modules. E2B_API_KEY, E2B_API_URL and E2B_SANDBOX_URL say where the dock is. Prints a line for
// each that went well, and for each that is not had here the words in which that is said; any other end is a failure.
import assert from 'node:assert/strict'
import { webcrypto } from 'node:crypto'
import { pathToFileURL } from 'node:url'

// Node 18 has it under this name alone, and the SDK signs its URLs with it.
globalThis.crypto ??= webcrypto
// As a module, which Node 18 can read too: what the other form of it requires is one.
const { Sandbox, Secret, CommandExitError, NotFoundError, TimeoutError } =
  await import(pathToFileURL(`${process.argv[2]}/node_modules/${process.argv[3]}/dist/index.mjs`))
const ok = (name) => console.log(`ok ${name}`)
const no = (name, words) => console.log(`no ${name}: ${words}`)
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
const same = await Sandbox.connect(sbx.sandboxId)
assert.equal(same.sandboxId, sbx.sandboxId)
ok('connect')

const pages = Sandbox.list({ limit: 1 })
const seen = []
while (pages.hasNext) seen.push(...await pages.nextItems())
assert.deepEqual(new Set(seen.map((s) => s.sandboxId)), new Set([sbx.sandboxId, other.sandboxId]))
assert.equal(seen.length, 2)
const found = await Sandbox.list({ query: { metadata: { user: 'a b' }, state: ['running'] } }).nextItems()
assert.deepEqual(found.map((s) => s.sandboxId), [sbx.sandboxId])
ok('list')
ok('metadata')

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

const changes = []
let [it, isSo] = signalled()
const until = async (name, type) => {
  while (!changes.some((e) => e.name === name && e.type === type)) {
    await it
    ;[it, isSo] = signalled()
  }
}
await sbx.files.makeDir('watched/below')
const [ended, hasEnded] = signalled()
const watch = await sbx.files.watchDir('watched', (e) => { changes.push(e); isSo() }, { recursive: true, timeoutMs: 0 })
await sbx.files.write('watched/a b', 'one')
await until('a b', 'create')
await sbx.files.write('watched/a b', 'two')
await until('a b', 'write')
await sbx.files.rename('watched/a b', 'watched/below/c')
await until('below/c', 'create')
await sbx.files.remove('watched/below/c')
await until('below/c', 'remove')
await sbx.commands.run('touch new && chmod 600 new', { cwd: '/workspace/watched' })
await until('new', 'chmod')
assert.deepEqual(changes.map((e) => [e.name, e.type]).slice(0, 5),
  [['a b', 'create'], ['a b', 'write'], ['a b', 'rename'], ['below/c', 'create'], ['below/c', 'remove']])
await watch.stop()
const flat = await sbx.files.watchDir('watched', () => {}, { onExit: hasEnded })
await sbx.files.remove('watched')
assert.equal(await ended, undefined)
await flat.stop()
await assert.rejects(sbx.files.watchDir('nothing', () => {}), NotFoundError)
ok('files.watchDir')
for (const [name, method, url] of [['files.uploadUrl', 'POST', await sbx.uploadUrl('x')], ['files.downloadUrl', 'GET', await sbx.downloadUrl('big')]]) {
  const answer = await fetch(url, { method })
  assert.equal(answer.status, 501)
  no(name, (await answer.json()).message)
}

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
ok('commands.background')
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
ok('resume')

const snapshot = await resumed.createSnapshot({ name: 'built' })
assert.deepEqual(snapshot.names, ['built'])
await resumed.files.write('kept', 'after it')
await resumed.createSnapshot()
const every = async (paginator) => {
  const all = []
  while (paginator.hasNext) all.push(...await paginator.nextItems())
  return all.map((s) => s.snapshotId)
}
assert.equal((await every(Sandbox.listSnapshots({ limit: 1 }))).length, 2)
assert.deepEqual(await every(Sandbox.listSnapshots({ name: 'built' })), [snapshot.snapshotId])
assert.equal((await every(resumed.listSnapshots())).length, 2)
assert.deepEqual(await every(other.listSnapshots()), [])
const restored = await Sandbox.create(snapshot.snapshotId, { metadata: { from: 'built' } })
assert.equal(await restored.files.read('kept'), 'over a pause')
assert.equal((await restored.commands.run('cat kept')).stdout, 'over a pause')
assert.equal((await restored.getInfo()).metadata.from, 'built')
assert.equal(await restored.kill(), true)
const named = await Sandbox.create('built')
assert.equal(await named.files.read('kept'), 'over a pause')
assert.equal(await named.kill(), true)
for (const id of await every(Sandbox.listSnapshots())) assert.equal(await Sandbox.deleteSnapshot(id), true)
assert.equal(await Sandbox.deleteSnapshot(snapshot.snapshotId), false)
await assert.rejects(Sandbox.create('built'), /no such template/)
ok('snapshot')

const forks = await resumed.fork({ count: 2, timeoutMs: 60_000 })
assert.equal(forks.length, 2)
for (const [i, fork] of forks.entries()) {
  assert.ok(fork instanceof Sandbox, String(fork))
  assert.equal(await fork.files.read('kept'), 'after it')
  assert.equal((await fork.commands.run(`echo ${i} > kept; echo $COLOR; cat kept`)).stdout, `blue\n${i}\n`)
  assert.deepEqual((await fork.getInfo()).metadata, { user: 'a b', run: '1' })
}
assert.equal(await resumed.files.read('kept'), 'after it')
assert.deepEqual(await every(Sandbox.listSnapshots()), [])
for (const fork of forks) assert.equal(await fork.kill(), true)
ok('fork')

const network = await sbx.updateNetwork({ denyOut: ['0.0.0.0/0'] }).catch((e) => e)
assert.match(network.message, /^501: /)
no('updateNetwork', network.message)
const secret = await Secret.create('name', 'value').catch((e) => e)
assert.match(secret.message, /501/)
no('secrets', secret.message)

assert.equal(await other.kill(), true)
assert.equal(await sbx.kill(), true)
assert.equal(await sbx.kill(), false)
assert.equal(await sbx.isRunning(), false)
await assert.rejects(Sandbox.connect(sbx.sandboxId), /not found/)
assert.deepEqual(await Sandbox.list().nextItems(), [])
ok('kill')
