#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Real HTTP and WebSocket clients from npm and node, through the proxy to origin.cjs.
//   clients.mjs HOST HTTP_PORT H2C_PORT TLS_PORT      '-' for a port leaves out what needs it
// undici (fetch, pipelining, streams, upgrade), node http/https/http2, ws, socket.io, curl when present.
import http from 'http'
import http2 from 'http2'
import https from 'https'
import net from 'net'
import tls from 'tls'
import crypto from 'crypto'
import { execFileSync, spawnSync } from 'child_process'
import { Readable } from 'stream'
import * as undici from 'undici'
import WebSocket from 'ws'
const [host, p1, p2, p3] = process.argv.slice(2)
if (!p3 || !/^(127\.|localhost$|::1$)/.test(host)) { console.error('clients.mjs HOST(loopback) HTTP_PORT H2C_PORT TLS_PORT'); process.exit(2) }
const H = `http://${host}:${p1}`, S = `https://${host}:${p3}`, sleep = ms => new Promise(resolve => setTimeout(resolve, ms))
const eq = (a, b, w = 'value') => { if (a !== b) throw new Error(`${w}: ${JSON.stringify(a)?.slice(0, 90)}, not ${JSON.stringify(b)?.slice(0, 90)}`) }
const sha = b => crypto.createHash('sha256').update(b).digest('hex')
const once = (e, n) => new Promise((resolve, reject) => { e.once(n, (...a) => resolve(a)); e.once('error', reject) })
const h2get = (s, headers, body) => new Promise((resolve, reject) => {
  const r = s.request({ ':path': '/', ...headers }); const out = { info: [], body: [] }
  r.on('headers', h => out.info.push(h[':status'])).on('response', h => { out.h = h }).on('trailers', t => { out.t = t }).on('data', d => out.body.push(d)).on('end', () => { out.body = Buffer.concat(out.body); resolve(out) }).on('error', reject)
  r.end(body)
})
const ws = (path = '/ws', o = {}, base = `ws://${host}:${p1}`) => new WebSocket(base + path, o.protocols, { perMessageDeflate: false, rejectUnauthorized: false, ...o })
const T = {
  'undici fetch: GET': async () => eq((await (await undici.fetch(H + '/bytes/5000')).text()).length, 5000),
  'undici fetch: streamed request body of unknown length': async () => { const r = await undici.fetch(H + '/reflect', { method: 'POST', duplex: 'half', body: Readable.toWeb(Readable.from((function * () { for (let i = 0; i < 50; i++) yield Buffer.alloc(20000, i) })())) }); const j = await r.json(); eq(j.length, 1000000) },
  'undici fetch: follows a redirect': async () => { const r = await undici.fetch(H + '/status/302'); eq(r.redirected, true); eq(r.status, 200) },
  'undici fetch: gzip answer': async () => eq((await (await undici.fetch(H + '/gzip')).text()).length, 5000),
  'undici fetch: abort in the middle, then go on': async () => { const a = new AbortController(); setTimeout(() => a.abort(), 300); try { const r = await undici.fetch(H + '/slow/50/100', { signal: a.signal }); await r.text(); throw new Error('was not aborted') } catch (e) { if (e.name !== 'AbortError') throw e } eq((await undici.fetch(H + '/bytes/1')).status, 200) },
  'undici pool: 200 requests, 10 connections': async () => { const p = new undici.Pool(H, { connections: 10 }); const r = await Promise.all(Array.from({ length: 200 }, async (_, i) => { const x = await p.request({ path: '/bytes/' + (i * 37), method: 'GET' }); return (await x.body.arrayBuffer()).byteLength === i * 37 })); await p.close(); eq(r.every(Boolean), true) },
  'undici client: 10 pipelined requests answered in order': async () => { const c = new undici.Client(H, { pipelining: 10 }); const r = await Promise.all(Array.from({ length: 30 }, async (_, i) => (await (await c.request({ path: '/reflect?n=' + i, method: 'GET' })).body.json()).url)); await c.close(); r.forEach((u, i) => eq(u, '/reflect?n=' + i)) },
  'undici: expectContinue': async () => { const c = new undici.Client(H); const r = await c.request({ path: '/reflect', method: 'PUT', body: 'hello', expectContinue: true }); eq((await r.body.json()).length, 5); await c.close() },
  'undici: trailers of a chunked answer': async () => { const c = new undici.Client(H); const r = await c.request({ path: '/chunked/5000/100', method: 'GET', headers: { te: 'trailers', connection: 'keep-alive' } }); eq((await r.body.arrayBuffer()).byteLength, 5000); await c.close() },
  'undici over TLS with h2': async () => { const d = new undici.Agent({ allowH2: true, connect: { rejectUnauthorized: false } }); const r = await undici.fetch(S + '/bytes/7000', { dispatcher: d }); eq((await r.text()).length, 7000); await d.destroy() },
  'node http: 64 methods and sizes keep alive on one connection': async () => { const agent = new http.Agent({ keepAlive: true, maxSockets: 1 }); const ports = new Set(); for (let i = 0; i < 64; i++) { const r = await new Promise((resolve, reject) => http.request(H + '/reflect', { agent, method: ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'][i % 6], headers: i % 6 ? { 'content-length': i * 100 } : {} }, resolve).on('error', reject).end(i % 6 ? Buffer.alloc(i * 100) : undefined)); ports.add(r.socket.localPort); const j = JSON.parse(Buffer.concat(await r.toArray())); eq(j.length, i % 6 ? i * 100 : 0) } agent.destroy(); eq(ports.size, 1, 'connections') },
  'node http: HEAD, 204 and 304 leave the connection usable': async () => { const agent = new http.Agent({ keepAlive: true, maxSockets: 1 }); for (const [m, u] of [['HEAD', '/bytes/1000'], ['GET', '/status/204'], ['GET', '/status/304'], ['HEAD', '/status/404'], ['GET', '/bytes/3']]) { const r = await new Promise((resolve, reject) => http.request(H + u, { agent, method: m, timeout: 3000 }, resolve).on('timeout', () => reject(new Error('silence after ' + u))).on('error', reject).end()); const b = Buffer.concat(await r.toArray()); eq(b.length, u === '/bytes/3' ? 3 : 0) } agent.destroy() },
  'node http: 103 early hints, if passed, come before the answer': async () => { const r = await new Promise((resolve, reject) => http.get(H + '/hints', resolve).on('error', reject)); eq(String(Buffer.concat(await r.toArray())), 'hinted') },
  'node http: 20 Set-Cookie fields stay apart': async () => { const r = await new Promise((resolve, reject) => http.get(H + '/cookies/20', resolve).on('error', reject)); r.resume(); eq(r.headers['set-cookie']?.length, 20) },
  'node http: an answer cut short is not made whole': async () => { const r = await new Promise((resolve, reject) => http.get(H + '/abort', resolve).on('error', reject)).catch(() => null); if (!r) return; if (r.statusCode >= 500) return r.resume(); await r.toArray().then(() => { throw new Error('the client believes the answer is complete') }, () => {}) },
  'node http: an early answer to an unfinished upload arrives': async () => { const r = await new Promise((resolve, reject) => { const q = http.request(H + '/early', { method: 'POST', headers: { 'content-length': 50000000 } }, resolve).on('error', e => e.code === 'EPIPE' || e.code === 'ECONNRESET' ? null : reject(e)); q.write(Buffer.alloc(100000)); setTimeout(() => reject(new Error('no answer in 4 s')), 4000).unref() }); eq(r.statusCode, 413); r.socket.destroy() },
  'node http: server-sent events are not held back': async () => { const r = await new Promise((resolve, reject) => http.get(H + '/sse/5', resolve).on('error', reject)); const t = []; r.on('data', () => t.push(Date.now())); await once(r, 'end'); if (t.length < 4) throw new Error(`${t.length} pieces, not 5`) },
  'node http: 8 kB answer header': async () => { const r = await new Promise((resolve, reject) => http.get(H + '/bighead/8000', resolve).on('error', reject)); r.resume(); eq(r.headers['x-big']?.length, 8000) },
  'node http: 100 MB download is whole': async () => { const r = await new Promise((resolve, reject) => http.get(H + '/bytes/100000000', resolve).on('error', reject)); let n = 0; for await (const d of r) n += d.length; eq(n, 100000000) },
  'node http: 20 MB upload is whole': async () => { const b = crypto.randomBytes(20 << 20); const r = await new Promise((resolve, reject) => http.request(H + '/reflect', { method: 'PUT' }, resolve).on('error', reject).end(b)); eq(JSON.parse(Buffer.concat(await r.toArray())).sha256, sha(b)) },
  'node https: TLS resumption': async () => { const first = tls.connect({ host, port: p3, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] }); const sess = new Promise(resolve => first.once('session', resolve)); first.write('GET /bytes/1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'); const s = await Promise.race([sess, sleep(3000)]); first.destroy(); if (!s) throw new Error('no ticket'); const again = tls.connect({ host, port: p3, rejectUnauthorized: false, session: s, ALPNProtocols: ['http/1.1'] }); await once(again, 'secureConnect'); const r = again.isSessionReused(); again.destroy(); eq(r, true, 'reused') },
  'node https: X-Forwarded or not, the body arrives over TLS h1': async () => { const r = await new Promise((resolve, reject) => https.request(S + '/reflect', { method: 'POST', rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] }, resolve).on('error', reject).end('over tls')); eq(JSON.parse(Buffer.concat(await r.toArray())).length, 8) },
  'node http2 (h2c): 100 streams at once': async () => { const s = http2.connect(`http://${host}:${p2}`); const r = await Promise.all(Array.from({ length: 100 }, (_, i) => h2get(s, { ':path': '/bytes/' + i * 100 }))); s.close(); r.forEach((x, i) => eq(x.body.length, i * 100)) },
  'node http2 (h2c): 5 MB upload and download on each of 4 streams': async () => { const s = http2.connect(`http://${host}:${p2}`); const b = crypto.randomBytes(5 << 20); const r = await Promise.all([1, 2, 3, 4].map(() => h2get(s, { ':path': '/mirror', ':method': 'POST' }, b))); s.close(); r.forEach(x => eq(sha(x.body), sha(b))) },
  'node http2 (h2c): cancel half of 50 streams, the rest complete': async () => { const s = http2.connect(`http://${host}:${p2}`); const done = []; for (let i = 0; i < 50; i++) { if (i % 2) { const r = s.request({ ':path': '/slow/100/50' }); r.on('error', () => {}); setTimeout(() => r.close(http2.constants.NGHTTP2_CANCEL), 50) } else done.push(h2get(s, { ':path': '/delay/200' })) } const r = await Promise.all(done); s.close(); r.forEach(x => eq(String(x.body), 'late')) },
  'node http2 (h2c): answer trailers': async () => { const s = http2.connect(`http://${host}:${p2}`); const r = await h2get(s, { ':path': '/chunked/3000/100', te: 'trailers' }); s.close(); eq(r.body.length, 3000) },
  'node http2 (h2c): cookie crumbs are joined for an h1 origin': async () => { const s = http2.connect(`http://${host}:${p2}`); const r = await h2get(s, { ':path': '/reflect', cookie: ['a=1', 'b=2', 'c=3'] }); s.close(); const c = JSON.parse(r.body).headers.filter(h => h[0].toLowerCase() === 'cookie'); eq(c.length, 1, 'cookie fields'); eq(c[0][1], 'a=1; b=2; c=3') },
  'node http2 (h2c): authority becomes Host': async () => { const s = http2.connect(`http://${host}:${p2}`); const r = await h2get(s, { ':path': '/reflect', ':authority': 'example.test:81' }); s.close(); eq(JSON.parse(r.body).headers.find(h => h[0].toLowerCase() === 'host')?.[1], 'example.test:81') },
  'node http2 (TLS): negotiated by ALPN': async () => { const s = http2.connect(S, { rejectUnauthorized: false }); const r = await h2get(s, { ':path': '/bytes/10' }); eq(s.alpnProtocol, 'h2'); s.close(); eq(r.body.length, 10) },
  'node http2 (h2c): ping is answered': async () => { const s = http2.connect(`http://${host}:${p2}`); await once(s, 'connect'); const t = await new Promise((resolve, reject) => { s.ping((e, d) => e ? reject(e) : resolve(d)); setTimeout(() => reject(new Error('no pong')), 3000).unref() }); s.destroy(); if (!(t >= 0)) throw new Error('no time') },
  'ws: text and binary echo': async () => { const s = ws(); await once(s, 'open'); for (const m of ['hé ☺', Buffer.alloc(70000, 5)]) { s.send(m); const [d] = await once(s, 'message'); eq(Buffer.compare(Buffer.from(m), d), 0) } s.close(); await once(s, 'close') },
  'ws: subprotocol and extra headers pass': async () => { const s = ws('/ws', { protocols: ['chat', 'superchat'] }); await once(s, 'open'); eq(s.protocol, 'chat'); s.terminate() },
  'ws: permessage-deflate end to end': async () => { const s = ws('/ws', { perMessageDeflate: true }); await once(s, 'open'); eq(/deflate/.test(s.extensions), true, 'extension'); s.send('x'.repeat(100000)); const [d] = await once(s, 'message'); eq(d.length, 100000); s.terminate() },
  'ws: close code and reason come back': async () => { const s = ws(); await once(s, 'open'); s.close(4001, 'bye'); const [c] = await once(s, 'close'); eq(c, 4001) },
  'ws: 100 connections at once': async () => { const a = await Promise.all(Array.from({ length: 100 }, async (_, i) => { const s = ws(); await once(s, 'open'); s.send('n' + i); const [d] = await once(s, 'message'); s.terminate(); return String(d) === 'n' + i })); eq(a.every(Boolean), true) },
  'ws: 20 MB in one message': async () => { const s = ws('/ws', { maxPayload: 1 << 26 }); await once(s, 'open'); const b = crypto.randomBytes(20 << 20); s.send(b); const [d] = await once(s, 'message'); eq(sha(d), sha(b)); s.terminate() },
  'ws: idle for 6 s, then goes on': async () => { const s = ws(); await once(s, 'open'); await sleep(6000); s.send('still'); const [d] = await once(s, 'message'); eq(String(d), 'still'); s.terminate() },
  'ws over TLS': async () => { const s = ws('/ws', {}, `wss://${host}:${p3}`); await once(s, 'open'); s.send('secret'); const [d] = await once(s, 'message'); eq(String(d), 'secret'); s.terminate() },
  'ws: bytes sent with the upgrade request are not lost': async () => { const s = net.connect(p1, host); s.write('GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'); s.write(Buffer.from('8182000000006869', 'hex')); let got = Buffer.alloc(0); s.on('data', d => { got = Buffer.concat([got, d]) }); await sleep(700); s.destroy(); if (!got.includes(Buffer.from('81026869', 'hex'))) throw new Error('no echo: ' + JSON.stringify(got.toString('latin1').slice(-60))) },
  'ws: a refused upgrade is an ordinary answer': async () => { const s = net.connect(p1, host); s.write('GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 99\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'); const [d] = await once(s, 'data'); s.destroy(); eq(/^HTTP\/1.1 4(00|26) /.test(String(d)), true, String(d).slice(0, 20)) }
}
try {
  const { Server } = await import('socket.io'), { io } = await import('socket.io-client')
  T['socket.io: polling, then upgraded to WebSocket (needs SOCKETIO_PORT, an origin port the proxy forwards to)'] = async () => {
    if (!process.env.SOCKETIO_PORT) return 'skip'
    const srv = new Server(+process.env.SOCKETIO_PORT, { transports: ['polling', 'websocket'] }); srv.on('connection', s => s.on('say', (x, cb) => cb(x.toUpperCase())))
    const c = io(`http://${host}:${process.env.SOCKETIO_PROXY_PORT}`, { transports: ['polling', 'websocket'] })
    try { await once(c, 'connect'); eq(await c.timeout(3000).emitWithAck('say', 'hello'), 'HELLO'); for (let i = 0; i < 30 && c.io.engine.transport.name !== 'websocket'; i++) await sleep(100); eq(c.io.engine.transport.name, 'websocket', 'transport') } finally { c.close(); srv.close() }
  }
} catch {}
const curl = (...a) => { const r = spawnSync('curl', ['-sS', '-m', '8', ...a], { encoding: 'latin1', maxBuffer: 1 << 26 }); if (r.status) throw new Error('curl ' + r.status + ' ' + r.stderr.trim()); return r.stdout }
try {
  execFileSync('curl', ['-V'])
  Object.assign(T, {
    'curl: 10 GETs on one connection': async () => eq(curl('-o', '/dev/null', '-w', '%{num_connects}', H + '/bytes/[1-10]').replace(/0+$/, ''), '1'),
    'curl: range of a body': async () => eq(curl('-r', '0-9', H + '/bytes/100').length >= 10, true),
    'curl: HTTP/1.0': async () => eq(curl('-0', H + '/chunked/2000/100').length, 2000),
    'curl: 1 MB upload with Expect': async () => eq(JSON.parse(curl('-H', 'Expect: 100-continue', '-d', '@-', '--data-binary', 'x'.repeat(100000), H + '/reflect')).length > 99999, true),
    'curl: h2c by prior knowledge': async () => eq(curl('--http2-prior-knowledge', '-w', '%{http_version}', '-o', '/dev/null', `http://${host}:${p2}/bytes/10`), '2'),
    'curl: TLS, both protocols': async () => { eq(curl('-k', '--http1.1', '-w', '%{http_version}', '-o', '/dev/null', S + '/bytes/10'), '1.1'); eq(curl('-k', '--http2', '-w', '%{http_version}', '-o', '/dev/null', S + '/bytes/10'), '2') },
    'curl: TLS 1.2 and 1.3, not 1.1': async () => { curl('-k', '--tlsv1.2', '--tls-max', '1.2', '-o', '/dev/null', S + '/bytes/1'); curl('-k', '--tlsv1.3', '-o', '/dev/null', S + '/bytes/1'); let low = false; try { curl('-k', '--tlsv1.0', '--tls-max', '1.1', '--ciphers', 'DEFAULT:@SECLEVEL=0', '-o', '/dev/null', S + '/bytes/1'); low = true } catch {} eq(low, false, 'TLS 1.1 accepted') },
    'curl: path with dots and escapes reaches the origin as sent': async () => eq(JSON.parse(curl('--path-as-is', H + '/reflect/%7Ea%2Fb?x=%20y&z')).url, '/reflect/%7Ea%2Fb?x=%20y&z')
  })
} catch {}
let ok = 0, bad = 0, skip = 0
for (const [n, f] of Object.entries(T)) {
  if (process.env.ONLY && !n.includes(process.env.ONLY)) continue
  if ((p2 === '-' && /h2c/.test(n)) || (p3 === '-' && /TLS|https/.test(n))) { skip++; continue }
  try { const r = await Promise.race([f(), new Promise((resolve, reject) => setTimeout(() => reject(new Error('no end in 30 s')), 30000).unref())]); if (r === 'skip') skip++; else ok++ } catch (e) { bad++; console.log(`FAIL ${n}: ${e.message || e}`) }
}
console.log(`${ok} passed, ${bad} failed${skip ? `, ${skip} skipped` : ''}`)
process.exit(bad ? 1 : 0)
