// What Node's HTTP parser (llhttp, strict) makes of messages: the same input and output as verdict.c, but every place
// is the same to it. The binding is Node's own, so that a message is one call and no timer or socket takes part.
'use strict';
process.noDeprecation = true;
const { HTTPParser, methods, allMethods } = process.binding('http_parser');
const input = require('fs').readFileSync(0);
const names = allMethods || methods;
const hex = (s) => 'x' + Buffer.from(s, 'latin1').toString('hex');
const out = [];

// The values come without the white space in front of them; what is behind them is no part of them either.
const trim = (s) => s.replace(/[ \t]+$/, '');

function connection(response, bytes) {
  const said = [];
  let fields = [], target = '', message = null, body = [];
  const parser = new HTTPParser();
  parser.initialize(response ? HTTPParser.RESPONSE : HTTPParser.REQUEST, {}, 64 * 1024, 0);
  parser[HTTPParser.kOnHeaders | 0] = (list, url) => {
    if (message) return; // trailers
    fields.push(...list);
    target += url;
  };
  parser[HTTPParser.kOnHeadersComplete | 0] = (major, minor, list, method, url, status, reason, upgrade, keep) => {
    fields.push(...(list || []));
    target += url || '';
    message = { major, minor, method: response ? '' : names[method], status, reason, keep };
    return 0;
  };
  parser[HTTPParser.kOnBody | 0] = (b, at, n) => {
    body.push(at === undefined ? Buffer.from(b) : Buffer.from(b.subarray(at, at + n)));
  };
  parser[HTTPParser.kOnMessageComplete | 0] = () => {
    const m = message;
    const start = response ? `A ${m.status} ${hex(m.reason)}` : `Q ${hex(m.method)} ${hex(target)}`;
    let list = '';
    for (let i = 0; i < fields.length; i += 2) list += `${hex(fields[i])}=${hex(trim(fields[i + 1]))},`;
    said.push(`${start} ${m.minor} x${Buffer.concat(body).toString('hex')} ${list}`);
    fields = []; target = ''; message = null; body = [];
    if (m.major !== 1) said.pop();
  };
  let end = 'clean';
  for (let rest = bytes; rest.length;) {
    const n = parser.execute(rest);
    if (n instanceof Error) { end = `bad ${n.code}`; break; }
    const last = said[said.length - 1] || '';
    if (last.startsWith(`Q ${hex('CONNECT')} `)) { end = 'tunnel'; break; }
    if (n <= 0 || n >= rest.length) break;
    rest = rest.subarray(n); // it stops behind an Upgrade that nobody takes up
  }
  if (end === 'clean') {
    const e = parser.finish();
    if (e instanceof Error) end = `bad ${e.code}`;
    else if (message) end = 'cut';
  }
  out.push(said.map((m) => m + '; ').join('') + end);
}

for (let at = 0; at < input.length;) {
  const n = input.readUInt32BE(at);
  connection(input[at + 4] === 4, input.subarray(at + 5, at + 5 + n));
  at += 5 + n;
}
process.stdout.write(out.join('\n') + '\n');
