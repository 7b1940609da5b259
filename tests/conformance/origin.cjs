#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// The backends that stand behind the proxy under test, all on 127.0.0.1.
//   origin.cjs BASE [NAME]
// BASE+0 HTTP/1.1 origin and WebSocket echo   BASE+1 gRPC and h2c origin (see grpc.cjs)
// BASE+2 TCP echo                            BASE+3 PROXY protocol inspector (TCP)
// BASE+4 UDP echo
'use strict'
const http = require('http'), net = require('net'), dgram = require('dgram'), crypto = require('crypto')
const base = Number(process.argv[2] || 18900), name = process.argv[3] || 'o1'
const host = '127.0.0.1'
const fill = n => Buffer.alloc(n, 'abcdefghijklmnopqrstuvwxyz0123456789')

function readAll (req, done) {
  const parts = []
  req.on('data', d => parts.push(d)).on('end', () => done(Buffer.concat(parts))).on('error', () => {})
}

const routes = {
  reflect: (req, res) => readAll(req, body => {
    const raw = []
    for (let i = 0; i < req.rawHeaders.length; i += 2) raw.push([req.rawHeaders[i], req.rawHeaders[i + 1]])
    const out = JSON.stringify({
      origin: name, method: req.method, url: req.url, version: req.httpVersion, headers: raw,
      trailers: req.rawTrailers, length: body.length, sha256: crypto.createHash('sha256').update(body).digest('hex'),
      peer: req.socket.remoteAddress + ':' + req.socket.remotePort
    })
    res.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(out) }).end(out)
  }),
  bytes: (req, res, n) => { req.resume(); res.writeHead(200, { 'Content-Type': 'application/octet-stream', 'Content-Length': +n }).end(req.method === 'HEAD' ? undefined : fill(+n)) },
  chunked: (req, res, n, size = 1000) => {
    req.resume()
    const plain = req.httpVersion === '1.0' // no chunks, so no trailers
    res.writeHead(200, { 'Content-Type': 'application/octet-stream', ...(plain ? { Connection: 'close' } : { Trailer: 'X-Sum' }) })
    let left = +n
    const more = () => {
      while (left > 0) {
        const k = Math.min(left, +size); left -= k
        if (!res.write(fill(k))) return res.once('drain', more)
      }
      if (!plain) res.addTrailers({ 'X-Sum': String(n) }); res.end()
    }
    more()
  },
  status: (req, res, n) => { req.resume(); res.writeHead(+n, +n >= 300 && +n < 400 && +n !== 304 ? { Location: '/reflect' } : {}).end([204, 304].includes(+n) ? undefined : 'status ' + n) },
  delay: (req, res, ms) => { req.resume(); setTimeout(() => res.end('late'), Math.min(+ms, 30000)) },
  slow: (req, res, n, ms) => { // N bytes, one every MS milliseconds
    req.resume(); res.writeHead(200, { 'Content-Length': +n }); let i = 0
    const t = setInterval(() => { if (i++ < +n) res.write('x'); else { clearInterval(t); res.end() } }, +ms)
    res.on('close', () => clearInterval(t))
  },
  hints: (req, res) => { req.resume(); res.writeEarlyHints({ link: '</style.css>; rel=preload' }, () => res.end('hinted')) },
  close: (req, res) => { req.resume(); res.writeHead(200, { Connection: 'close' }); res.end('closing') },
  abort: (req, res) => { res.writeHead(200, { 'Content-Length': 1000 }); res.write('partial', () => req.socket.resetAndDestroy()) },
  early: (req, res) => { res.writeHead(413, { 'Content-Length': 0 }).end() }, // answers without reading the body
  gzip: (req, res) => { req.resume(); const b = require('zlib').gzipSync(fill(5000)); res.writeHead(200, { 'Content-Encoding': 'gzip', 'Content-Length': b.length }).end(b) },
  sse: (req, res, n = 3) => {
    req.resume(); res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache' })
    let i = 0; const t = setInterval(() => { if (i < +n) res.write(`id: ${i}\ndata: tick ${i++}\n\n`); else { clearInterval(t); res.end() } }, 100)
    res.on('close', () => clearInterval(t))
  },
  bighead: (req, res, n) => { req.resume(); res.writeHead(200, { 'X-Big': 'h'.repeat(+n) }).end('ok') },
  echo: (req, res) => { req.resume(); let o = ''; for (let i = 0; i < req.rawHeaders.length; i += 2) o += `${req.rawHeaders[i]}: ${req.rawHeaders[i + 1]}\n`; res.end(o) },
  cookies: (req, res, n) => { req.resume(); res.writeHead(200, { 'Set-Cookie': Array.from({ length: +n }, (_, i) => `c${i}=v${i}; Path=/`) }).end('ok') }
}
// Anything else: the body comes back, whatever the method ('OK' where there is none).
const echo = (req, res) => readAll(req, body => {
  if (!body.length && req.method !== 'POST') body = Buffer.from('OK')
  res.writeHead(200, { 'Content-Type': 'text/plain', 'Content-Length': body.length, 'X-Origin': name }).end(req.method === 'HEAD' ? undefined : body)
})

const server = http.createServer({ keepAliveTimeout: 60000, requestTimeout: 0, headersTimeout: 0, maxHeaderSize: 262144 }, (req, res) => {
  const [r, ...args] = new URL(req.url, 'http://x').pathname.slice(1).split('/')
  ;(Object.hasOwn(routes, r) ? routes[r] : echo)(req, res, ...args)
})
server.on('clientError', (e, s) => { if (s.writable) s.end('HTTP/1.1 400 Bad Request\r\nX-Rejected-By: origin\r\nConnection: close\r\nContent-Length: 0\r\n\r\n') })
server.on('checkContinue', (req, res) => { res.writeContinue(); server.emit('request', req, res) })
let ws = null
try { ws = require('ws') } catch { console.error('ws is not installed: WebSocket echo is off') }
if (ws) {
  const wss = new ws.WebSocketServer({ server, perMessageDeflate: { threshold: 0 }, maxPayload: 64 << 20, maxFragments: 1 << 20, handleProtocols: p => p.values().next().value })
  wss.on('connection', s => { s.on('message', (d, bin) => s.send(d, { binary: bin })); s.on('error', () => {}) })
}
server.listen(base, host)

net.createServer({ allowHalfOpen: true }, s => { s.on('error', () => {}); s.pipe(s) }).listen(base + 2, host)

// Answers the PROXY protocol header it got as one JSON line, then echoes.
const V2 = Buffer.from('0d0a0d0a000d0a515549540a', 'hex')
function takeHeader (b) {
  if (b.length >= 16 && b.subarray(0, 12).equals(V2)) {
    const n = b.readUInt16BE(14)
    if (b.length < 16 + n) return null
    const h = { v: 2, command: b[12] & 15, family: b[13] >> 4, transport: b[13] & 15, tlvs: [] }
    let p = 16
    if (h.family === 1) { h.src = [...b.subarray(16, 20)].join('.'); h.dst = [...b.subarray(20, 24)].join('.'); h.sport = b.readUInt16BE(24); h.dport = b.readUInt16BE(26); p = 28 }
    if (h.family === 2) { h.sport = b.readUInt16BE(48); h.dport = b.readUInt16BE(50); p = 52 }
    while (p + 3 <= 16 + n) { const l = b.readUInt16BE(p + 1); h.tlvs.push([b[p], b.subarray(p + 3, p + 3 + l).toString('hex')]); p += 3 + l }
    return [h, 16 + n]
  }
  const e = b.indexOf('\r\n')
  if (e < 0) return b.length > 107 ? [{ v: 0 }, 0] : null
  const w = b.subarray(0, e).toString('latin1').split(' ')
  if (w[0] !== 'PROXY') return [{ v: 0 }, 0]
  return [{ v: 1, family: w[1], src: w[2], dst: w[3], sport: +w[4], dport: +w[5] }, e + 2]
}
net.createServer(s => {
  let buf = Buffer.alloc(0)
  s.on('error', () => {})
  const first = d => {
    buf = Buffer.concat([buf, d])
    const r = takeHeader(buf)
    if (!r) return
    s.off('data', first)
    s.write(JSON.stringify(r[0]) + '\n'); s.write(buf.subarray(r[1])); s.pipe(s)
  }
  s.on('data', first)
}).listen(base + 3, host)

const u = dgram.createSocket('udp4'); u.on('message', (m, r) => u.send(m, r.port, r.address)); u.on('error', () => {}); u.bind(base + 4, host)

process.on('uncaughtException', e => { console.error('origin: ' + (e.stack || e)); if (e.code === 'EADDRINUSE') process.exit(1) })
