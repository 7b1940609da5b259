#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// HTTP/2 requests that must not become something else as HTTP/1.1: raw frames in, the strict judge of recorder.mjs behind.
//   h2smuggle.mjs HOST H2C_PORT ORIGIN_PORT
// The h2c listener forwards to 127.0.0.1:ORIGIN_PORT as HTTP/1.1, where this starts the recording origin (run the peer with --no-origin).
// Each case passes when nothing reaches the origin, or what reaches it is unambiguous and holds no smuggled part.
import net from 'net'
import { start, strict } from './recorder.mjs'
const [host, port, oport] = process.argv.slice(2)
if (!oport || !/^(127\.|localhost$|::1$)/.test(host)) { console.error('h2smuggle.mjs HOST(loopback) H2C_PORT ORIGIN_PORT'); process.exit(2) }
const rec = await start(+oport)
const int = (n, bits, first) => { const m = (1 << bits) - 1; if (n < m) return Buffer.from([first | n]); const o = [first | m]; n -= m; while (n >= 128) { o.push(n & 127 | 128); n >>= 7 } o.push(n); return Buffer.from(o) }
const str = s => { const b = Buffer.from(s, 'latin1'); return Buffer.concat([int(b.length, 7, 0), b]) }
const block = fields => Buffer.concat(fields.map(([k, v]) => Buffer.concat([Buffer.from([0x10]), str(k), str(v)]))) // literal, never indexed, no Huffman
const frame = (type, flags, id, payload = Buffer.alloc(0)) => { const h = Buffer.alloc(9); h.writeUIntBE(payload.length, 0, 3); h[3] = type; h[4] = flags; h.writeUInt32BE(id, 5); return Buffer.concat([h, payload]) }
const P = (method = 'POST', path = '/', more = []) => [[':method', method], [':scheme', 'http'], [':path', path], [':authority', 'localhost'], ...more]
const sneak = 'GET /smuggled HTTP/1.1\r\nHost: localhost\r\nX: '
const reqs = (fields, body, trailers) => [frame(1, body === undefined && !trailers ? 5 : 4, 1, block(fields)), ...(body === undefined ? [] : [frame(0, trailers ? 0 : 1, 1, Buffer.from(body))]), ...(trailers ? [frame(1, 5, 1, block(trailers))] : [])]
const C = {
  'plain GET (must work)': [reqs(P('GET')), 'ok'],
  'plain POST (must work)': [reqs(P('POST', '/', [['content-length', '5']]), 'hello'), 'ok'],
  'POST of unknown length (must work)': [reqs(P(), 'hello'), 'ok'],
  'H2.CL: content-length 0 with a body': [reqs(P('POST', '/', [['content-length', '0']]), sneak)],
  'H2.CL: content-length too short': [reqs(P('POST', '/', [['content-length', '3']]), 'abc' + sneak)],
  'H2.CL: content-length too long': [reqs(P('POST', '/', [['content-length', '100']]), 'abc')],
  'H2.CL: two different lengths': [reqs(P('POST', '/', [['content-length', '3'], ['content-length', '9']]), 'abc')],
  'H2.CL: length with a sign': [reqs(P('POST', '/', [['content-length', '+3']]), 'abc')],
  'H2.CL: length as a list': [reqs(P('POST', '/', [['content-length', '3, 3']]), 'abc')],
  'H2.CL: length in a GET without a body': [reqs(P('GET', '/', [['content-length', '5']]))],
  'H2.TE: transfer-encoding chunked': [reqs(P('POST', '/', [['transfer-encoding', 'chunked']]), '0\r\n\r\n' + sneak)],
  'H2.TE: transfer-encoding with a trailing space': [reqs(P('POST', '/', [['transfer-encoding', 'chunked ']]), '0\r\n\r\n' + sneak)],
  'H2.TE: transfer-encoding twice': [reqs(P('POST', '/', [['transfer-encoding', 'identity'], ['transfer-encoding', 'chunked']]), '0\r\n\r\n' + sneak)],
  'H2.TE: in the trailers': [reqs(P(), '0\r\n\r\n' + sneak, [['transfer-encoding', 'chunked']])],
  'connection field': [reqs(P('GET', '/', [['connection', 'keep-alive, x-a'], ['x-a', '1']]))],
  'proxy-connection, keep-alive, upgrade': [reqs(P('GET', '/', [['proxy-connection', 'close'], ['keep-alive', '5'], ['upgrade', 'websocket']]))],
  'te other than trailers': [reqs(P('GET', '/', [['te', 'gzip']]))],
  'CRLF in a value': [reqs(P('GET', '/', [['x-a', 'b\r\nTransfer-Encoding: chunked']]))],
  'CRLF CRLF in a value': [reqs(P('GET', '/', [['x-a', 'b\r\n\r\n' + sneak]]))],
  'LF in a value': [reqs(P('GET', '/', [['x-a', 'b\nx-b: c']]))],
  'CR in a value': [reqs(P('GET', '/', [['x-a', 'b\rx-b: c']]))],
  'NUL in a value': [reqs(P('GET', '/', [['x-a', 'b\0c']]))],
  'space before a value': [reqs(P('GET', '/', [['x-a', ' b']]))],
  'CRLF in a name': [reqs(P('GET', '/', [['x-a: b\r\ntransfer-encoding', 'chunked']]))],
  'colon in a name': [reqs(P('GET', '/', [['transfer-encoding: chunked, x', 'y']]))],
  'space in a name': [reqs(P('POST', '/', [['transfer-encoding ', 'chunked']]), '0\r\n\r\n' + sneak)],
  'tab in a name': [reqs(P('GET', '/', [['x\ta', 'b']]))],
  'empty name': [reqs(P('GET', '/', [['', 'b']]))],
  'upper case name': [reqs(P('GET', '/', [['X-Upper', 'b']]))],
  'CRLF in the path': [reqs(P('GET', '/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\nX: y'))],
  'space in the path': [reqs(P('GET', '/a b'))],
  'fragment in the path': [reqs(P('GET', '/a#b'))],
  'path without a slash': [reqs(P('GET', 'example.org/'))],
  'absolute path form': [reqs(P('GET', 'http://other.test/'))],
  'empty path': [reqs(P('GET', ''))],
  'asterisk with GET': [reqs(P('GET', '*'))],
  'CRLF in the method': [reqs(P('GET / HTTP/1.1\r\nX: y\r\n\r\nGET'))],
  'space in the method': [reqs(P('GET /smuggled HTTP/1.1', '/'))],
  'empty method': [reqs(P('', '/'))],
  'CRLF in the authority': [reqs([[':method', 'GET'], [':scheme', 'http'], [':path', '/'], [':authority', 'a\r\nTransfer-Encoding: chunked']])],
  'path in the authority': [reqs([[':method', 'GET'], [':scheme', 'http'], [':path', '/'], [':authority', 'localhost/x']])],
  'user in the authority': [reqs([[':method', 'GET'], [':scheme', 'http'], [':path', '/'], [':authority', 'u@localhost']])],
  'comma in the authority': [reqs([[':method', 'GET'], [':scheme', 'http'], [':path', '/'], [':authority', 'a, b']])],
  'CRLF in the scheme': [reqs([[':method', 'GET'], [':scheme', 'http\r\nx: y'], [':path', '/'], [':authority', 'localhost']])],
  'URL in the scheme': [reqs([[':method', 'GET'], [':scheme', 'http://other.test/?'], [':path', '/'], [':authority', 'localhost']])],
  'Host differs from :authority': [reqs(P('GET', '/', [['host', 'other.test']]))],
  'two Host fields': [reqs([[':method', 'GET'], [':scheme', 'http'], [':path', '/'], ['host', 'a'], ['host', 'b']])],
  'neither Host nor :authority': [reqs([[':method', 'GET'], [':scheme', 'http'], [':path', '/']])],
  'pseudo field in the trailers': [reqs(P(), 'hello', [[':path', '/smuggled']])],
  'content-length in the trailers': [reqs(P(), 'hello', [['content-length', '0']])],
  'host in the trailers': [reqs(P(), 'hello', [['host', 'other.test']])],
  'plain trailers (must work)': [reqs(P(), 'hello', [['x-sum', '1']]), 'ok'],
  'look-alike transfer_encoding': [reqs(P('POST', '/', [['transfer_encoding', 'chunked']]), 'hello')],
  'CONNECT with a path': [reqs(P('CONNECT', '/'))],
  'cookie with CRLF': [reqs(P('GET', '/', [['cookie', 'a=b\r\nx: y']]))],
  'expect 100-continue with a body': [reqs(P('POST', '/', [['expect', '100-continue'], ['content-length', '5']]), 'hello'), 'ok']
}
const sleep = ms => new Promise(resolve => setTimeout(resolve, ms))
async function one (frames) {
  const s = net.connect({ host, port: +port, noDelay: true }); let buf = Buffer.alloc(0); const seen = { rst: null, goaway: null, headers: false, ended: false }
  s.on('error', () => {}); let wake; const end = new Promise(resolve => { wake = resolve })
  s.on('data', d => {
    buf = Buffer.concat([buf, d])
    while (buf.length >= 9) { const n = buf.readUIntBE(0, 3); if (buf.length < 9 + n) break; const t = buf[3], f = buf[4], id = buf.readUInt32BE(5); const p = buf.subarray(9, 9 + n); if (t === 4 && !(f & 1)) s.write(frame(4, 1, 0)); if (t === 1 && id === 1) { seen.headers = true; seen.first ??= p[0]; if (f & 1) { seen.ended = true; wake() } } if (t === 0 && id === 1 && f & 1) { seen.ended = true; wake() } if (t === 3) { seen.rst = p.readUInt32BE(0); wake() } if (t === 7) { seen.goaway = p.readUInt32BE(4); wake() } buf = buf.subarray(9 + n) }
  }).on('close', () => wake())
  s.write(Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(4, 0, 0), ...frames]))
  await Promise.race([end, sleep(1500)]); await sleep(40); s.destroy()
  return seen
}
let ok = 0, bad = 0
for (const [n, [frames, must]] of Object.entries(C)) {
  const seen = await one(frames); await sleep(10)
  const conns = rec.conns.map(c => c.bytes).filter(b => b.length); let why = null
  for (const b of conns) { const p = strict(b); if (p.length) why = p[0]; else if (/(^|\n)(GET \/smuggled|x-b: c|x: y|X: y)/.test(b.toString('latin1').replace(/\r\n\r\nGET \/smuggled HTTP\/1\.1\r\nHost: localhost\r\nX: $/, '')) && !/content-length|transfer-encoding/i.test(b.toString('latin1'))) why = 'the injected part became a line of its own' }
  if (rec.conns.reduce((a, c) => a + c.requests, 0) > 1) why = why || 'the origin saw more than one request'
  if (must && !(seen.headers && seen.ended && conns.length)) why = 'a valid request was not answered: ' + JSON.stringify(seen)
  rec.drop(); await sleep(5)
  if (why) { bad++; console.log(`FAIL ${n}: ${why}`) } else ok++
}
console.log(`${ok} passed, ${bad} failed`); process.exit(bad ? 1 : 0)
