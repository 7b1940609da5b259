#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// PROXY protocol, both ways. Vectors follow the public specification (haproxy.org, proxy-protocol.txt); npm's
// proxy-protocol-js is used as a second, independent encoder of v1 and v2 headers.
//   proxyproto.mjs HOST ACCEPT_PORT SEND_PORT
// ACCEPT_PORT: HTTP listener that takes PROXY headers and tells the origin X-Forwarded-For; SEND_PORT: TCP listener
// that writes a PROXY header to the inspector of origin.cjs. '-' leaves one out.
import net from 'net'
import { createRequire } from 'module'
const require = createRequire(import.meta.url)
const [host, ap, sp] = process.argv.slice(2)
if (!sp || !/^(127\.|localhost$|::1$)/.test(host)) { console.error('proxyproto.mjs HOST(loopback) ACCEPT_PORT|- SEND_PORT|-'); process.exit(2) }
const SIG = Buffer.from('0d0a0d0a000d0a515549540a', 'hex')
const v2 = (cmd, fam, addr = Buffer.alloc(0), tlv = Buffer.alloc(0)) => { const b = Buffer.alloc(4); b[0] = cmd; b[1] = fam; b.writeUInt16BE(addr.length + tlv.length, 2); return Buffer.concat([SIG, b, addr, tlv]) }
const a4 = (s, d, p, q) => { const b = Buffer.alloc(12); s.split('.').forEach((x, i) => { b[i] = +x }); d.split('.').forEach((x, i) => { b[4 + i] = +x }); b.writeUInt16BE(p, 8); b.writeUInt16BE(q, 10); return b }
const a6 = (p, q) => { const b = Buffer.alloc(36); b[0] = 0x20; b[1] = 1; b[2] = 0x0d; b[3] = 0xb8; b[15] = 1; b[16] = 0x20; b[17] = 1; b[18] = 0x0d; b[19] = 0xb8; b[31] = 2; b.writeUInt16BE(p, 32); b.writeUInt16BE(q, 34); return b }
const tlv = (t, v) => { const b = Buffer.alloc(3); b[0] = t; b.writeUInt16BE(v.length, 1); return Buffer.concat([b, v]) }
const GET = Buffer.from('GET /reflect HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
const talk = (port, pieces, wait = 3000) => new Promise(resolve => {
  const s = net.connect({ host, port, noDelay: true }); let got = ''; const t = setTimeout(() => { s.destroy(); resolve(got) }, wait)
  s.on('data', d => { got += d.toString('latin1') }).on('close', () => { clearTimeout(t); resolve(got) }).on('error', () => {})
  ;(async () => { for (const p of pieces) { if (!s.destroyed) s.write(p); await new Promise(resolve => setTimeout(resolve, 30)) } })()
})
const from = async (hdr, pieces) => { // the client address that the origin is told
  const r = await talk(ap, pieces || [Buffer.concat([hdr, GET])]); const i = r.indexOf('{')
  if (!/^HTTP\/1\.1 200/.test(r)) return 'refused'
  const h = JSON.parse(r.slice(i, r.lastIndexOf('}') + 1)).headers.filter(x => x[0].toLowerCase() === 'x-forwarded-for')
  return h.map(x => x[1]).join(',') || 'none'
}
const eq = (a, b) => { if (a !== b) throw new Error(`${a}, not ${b}`) }
const T = {}
if (ap !== '-') {
  const good = (n, hdr, ip, pieces) => { T['accept: ' + n] = async () => eq(await from(hdr, pieces), ip) }
  // The specification lets a receiver choose here; a wrong address is still wrong.
  const may = (n, hdr, ip, pieces) => { T['accept or refuse: ' + n] = async () => { const r = await from(hdr, pieces); if (r !== 'refused') eq(r, ip) } }
  const bad = (n, hdr) => { T['refuse: ' + n] = async () => eq(await from(hdr), 'refused') }
  good('v1 TCP4', Buffer.from('PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n'), '192.0.2.1')
  good('v1 TCP6', Buffer.from('PROXY TCP6 2001:db8::1 2001:db8::2 56324 443\r\n'), '2001:db8::1')
  good('v1 UNKNOWN keeps the real address', Buffer.from('PROXY UNKNOWN\r\n'), '127.0.0.1')
  good('v1 UNKNOWN with addresses to be ignored', Buffer.from('PROXY UNKNOWN ffff:f...f:ffff ffff:f...f:ffff 65535 65535\r\n'), '127.0.0.1')
  good('v1 longest TCP6 line', Buffer.from('PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n'), 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff')
  const v1 = Buffer.from('PROXY TCP4 192.0.2.9 198.51.100.2 1 2\r\n')
  good('v1 header in its own segment', v1, '192.0.2.9', [v1, GET])
  good('v2 TCP4', v2(0x21, 0x11, a4('192.0.2.3', '198.51.100.2', 1000, 443)), '192.0.2.3')
  good('v2 TCP6', v2(0x21, 0x21, a6(1000, 443)), '2001:db8::1')
  good('v2 LOCAL keeps the real address', v2(0x20, 0x00), '127.0.0.1')
  good('v2 LOCAL with an address block to be skipped', v2(0x20, 0x11, a4('192.0.2.4', '198.51.100.2', 1, 2)), '127.0.0.1')
  may('v2 UNSPEC keeps the real address', v2(0x21, 0x00, Buffer.alloc(7)), '127.0.0.1')
  good('v2 TCP4 with TLVs (ALPN, authority, unique id, noop, unknown)', v2(0x21, 0x11, a4('192.0.2.5', '198.51.100.2', 1, 2), Buffer.concat([tlv(1, Buffer.from('h2')), tlv(2, Buffer.from('example.org')), tlv(5, Buffer.alloc(16, 1)), tlv(4, Buffer.alloc(9)), tlv(0xee, Buffer.from('x'))])), '192.0.2.5')
  const w = v2(0x21, 0x11, a4('192.0.2.6', '198.51.100.2', 1, 2)); good('v2 header with the request in the same segment', w, '192.0.2.6'); may('v2 header in two segments', w, '192.0.2.6', [w.subarray(0, 13), Buffer.concat([w.subarray(13), GET])])
  try {
    const pp = require('proxy-protocol-js')
    const P1 = new pp.V1ProxyProtocol(pp.INETProtocol.TCP4, new pp.Peer('203.0.113.7', 40000), new pp.Peer('203.0.113.8', 80))
    good('v1 as npm proxy-protocol-js builds it', Buffer.from(P1.build()), '203.0.113.7')
    const P2 = new pp.V2ProxyProtocol(pp.Command.PROXY, pp.TransportProtocol.STREAM, new pp.IPv4ProxyAddress(pp.IPv4Address.createFrom([203, 0, 113, 9]), 40000, pp.IPv4Address.createFrom([203, 0, 113, 8]), 80))
    good('v2 as npm proxy-protocol-js builds it', Buffer.from(P2.build()), '203.0.113.9')
  } catch (e) { console.log('proxy-protocol-js left out: ' + e.message) }
  bad('no header at all', Buffer.alloc(0))
  bad('v1 lower case', Buffer.from('proxy TCP4 192.0.2.1 198.51.100.2 1 2\r\n'))
  bad('v1 address out of range', Buffer.from('PROXY TCP4 192.0.2.256 198.51.100.2 1 2\r\n'))
  bad('v1 port out of range', Buffer.from('PROXY TCP4 192.0.2.1 198.51.100.2 65536 2\r\n'))
  bad('v1 missing port', Buffer.from('PROXY TCP4 192.0.2.1 198.51.100.2 1\r\n'))
  bad('v1 IPv6 text in TCP4', Buffer.from('PROXY TCP4 2001:db8::1 2001:db8::2 1 2\r\n'))
  bad('v1 line longer than 107 bytes', Buffer.from('PROXY TCP4 192.0.2.1 198.51.100.2 1 2' + ' '.repeat(120) + '\r\n'))
  bad('v1 unknown family', Buffer.from('PROXY TCP5 192.0.2.1 198.51.100.2 1 2\r\n'))
  bad('v2 version 3', v2(0x31, 0x11, a4('192.0.2.3', '198.51.100.2', 1, 2)))
  bad('v2 unknown command', v2(0x2f, 0x11, a4('192.0.2.3', '198.51.100.2', 1, 2)))
  bad('v2 address block too short for TCP4', v2(0x21, 0x11, Buffer.alloc(8)))
  bad('v2 signature broken in the last byte', Buffer.concat([SIG.subarray(0, 11), Buffer.from('0b211100 0c'.replace(' ', ''), 'hex'), a4('192.0.2.3', '198.51.100.2', 1, 2)]))
}
if (sp !== '-') {
  const line = async bytes => { const r = await talk(sp, [bytes], 600); const i = r.indexOf('\n'); return [JSON.parse(r.slice(0, i)), r.slice(i + 1)] }
  T['send: a header arrives before the data, which is untouched'] = async () => { const [h, rest] = await line(Buffer.from('hello')); if (![1, 2].includes(h.v)) throw new Error('no header: ' + JSON.stringify(h)); eq(rest, 'hello') }
  T['send: source and destination are the real ones'] = async () => {
    const s = net.connect({ host, port: sp, localAddress: '127.0.0.9' }); await new Promise(resolve => s.on('connect', resolve)); const lp = s.localPort; s.write('x')
    const d = String(await new Promise(resolve => s.once('data', resolve))); s.destroy(); const h = JSON.parse(d.split('\n')[0])
    eq(h.src, '127.0.0.9'); eq(h.sport, lp); eq(h.dst, host); eq(h.dport, +sp)
  }
  T['send: 50 connections, each its own source port'] = async () => { const r = await Promise.all(Array.from({ length: 50 }, () => line(Buffer.from('y')))); eq(new Set(r.map(x => x[0].sport)).size, 50) }
}
let ok = 0, no = 0
for (const [n, f] of Object.entries(T)) { try { await f(); ok++ } catch (e) { no++; console.log(`FAIL ${n}: ${e.message}`) } }
console.log(`${ok} passed, ${no} failed`); process.exit(no ? 1 : 0)
