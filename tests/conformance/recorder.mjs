#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// A deliberately lenient HTTP/1.1 origin that keeps every byte it gets, so that what a proxy lets through can be judged.
//   recorder.mjs PORT        as a program: GET / -> OK, POST -> the body, /echo -> the headers, /cookie -> the cookies
// As a module: start(port) -> { conns, close() }; strict(bytes) -> problems in a byte stream of requests.
import net from 'net'
import { pathToFileURL } from 'url'

const find = (b, s, from = 0) => b.indexOf(s, from, 'latin1')
// One request from the front of b, leniently: null while more is needed.
function lenient (b) {
  let skip = 0
  while (skip < b.length && (b[skip] === 13 || b[skip] === 10)) skip++
  const a = find(b, '\r\n\r\n', skip), c = find(b, '\n\n', skip)
  if (a < 0 && c < 0) return null
  const end = a >= 0 && (c < 0 || a < c) ? a : c, start = end === a ? a + 4 : c + 2
  const lines = b.subarray(skip, end).toString('latin1').split(/\r?\n/), [method, target = '/'] = lines[0].split(/\s+/)
  const h = []
  for (const l of lines.slice(1)) { if (/^[ \t]/.test(l) && h.length) { h.at(-1)[1] += ' ' + l.trim(); continue } const i = l.indexOf(':'); h.push(i < 0 ? [l, ''] : [l.slice(0, i), l.slice(i + 1).trim()]) }
  const get = n => h.filter(x => x[0].trim().toLowerCase() === n).map(x => x[1])
  const req = { method, target, headers: h, get, body: Buffer.alloc(0), used: start }
  if (get('transfer-encoding').some(v => /chunked/i.test(v))) {
    let p = start; const parts = []
    for (;;) {
      const e = find(b, '\n', p)
      if (e < 0) return { ...req, partial: true }
      const n = parseInt(b.subarray(p, e).toString('latin1').trim(), 16) || 0
      p = e + 1
      if (n === 0) {
        for (;;) { const f = find(b, '\n', p); if (f < 0) return { ...req, partial: true }; const l = b.subarray(p, f).toString('latin1').trim(); p = f + 1; if (!l) break }
        return { ...req, body: Buffer.concat(parts), used: p }
      }
      if (b.length < p + n) return { ...req, partial: true }
      parts.push(b.subarray(p, p + n)); p += n
      if (b[p] === 13) p++
      if (b[p] === 10) p++
    }
  }
  const n = parseInt(get('content-length')[0], 10) || 0
  if (b.length < start + n) return { ...req, partial: true }
  return { ...req, body: b.subarray(start, start + n), used: start + n }
}

export function start (port, host = '127.0.0.1') {
  const conns = [], live = new Set()
  const server = net.createServer({ noDelay: true }, s => {
    const conn = { bytes: Buffer.alloc(0), requests: 0 }; conns.push(conn); live.add(s); s.on('close', () => live.delete(s))
    let buf = Buffer.alloc(0), continued = false
    s.on('error', () => {})
    s.on('data', d => {
      conn.bytes = Buffer.concat([conn.bytes, d]); buf = Buffer.concat([buf, d])
      for (;;) {
        const r = lenient(buf)
        if (!r) return
        if (r.partial) { if (!continued && r.get('expect').some(v => /100-continue/i.test(v))) { continued = true; s.write('HTTP/1.1 100 Continue\r\n\r\n') } return }
        continued = false; conn.requests++; buf = buf.subarray(r.used)
        const path = r.target.replace(/^https?:\/\/[^/]*/, '').split('?')[0]
        let body = r.method === 'POST' || r.body.length ? r.body : Buffer.from('OK')
        if (path === '/echo') body = Buffer.from(r.headers.map(([k, v]) => `${k}: ${v}\n`).join(''), 'latin1')
        if (path === '/cookie') body = Buffer.from(r.get('cookie').join(';').split(';').map(x => x.trim()).filter(x => x.includes('=')).map(x => x + '\n').join(''), 'latin1')
        const close = r.get('connection').some(v => /close/i.test(v))
        s.write(`HTTP/1.1 200 OK\r\nDate: ${new Date().toUTCString()}\r\nContent-Type: text/plain\r\nContent-Length: ${body.length}\r\n${close ? 'Connection: close\r\n' : ''}\r\n`)
        if (r.method !== 'HEAD') s.write(body)
        if (close) { s.end(); return }
      }
    })
  })
  return new Promise((resolve, reject) => { server.on('error', reject); server.listen(port, host, () => resolve({ conns, drop: () => { for (const s of live) s.destroy(); conns.length = 0 }, close: () => server.close() })) })
}

// What a strict RFC 9112 recipient finds wrong in a stream of requests; [] where every byte is unambiguous.
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
export function strict (b) {
  let p = 0
  const bad = []
  while (p < b.length) {
    const e = find(b, '\r\n\r\n', p)
    if (e < 0) { if (/^[\x21-\x7e]+ /.test(b.subarray(p).toString('latin1')) || p === 0) return bad; bad.push('stray bytes ' + JSON.stringify(b.subarray(p, p + 30).toString('latin1'))); return bad }
    const lines = b.subarray(p, e).toString('latin1').split('\r\n')
    const rl = /^([^ ]+) ([^ ]+) HTTP\/1\.([01])$/.exec(lines[0])
    if (!rl) { bad.push('request line ' + JSON.stringify(lines[0].slice(0, 60))); return bad }
    if (!TOKEN.test(rl[1])) bad.push('method ' + JSON.stringify(rl[1]))
    if (/[\x00-\x20\x7f]/.test(rl[2])) bad.push('control character in the target')
    if (rl[2].includes('#')) bad.push('fragment in the target')
    const h = {}
    for (const l of lines.slice(1)) {
      const i = l.indexOf(':'), k = l.slice(0, Math.max(i, 0))
      if (/^[ \t]/.test(l)) { bad.push('obs-fold'); continue }
      if (i <= 0 || !TOKEN.test(k)) { bad.push('field name ' + JSON.stringify(l.slice(0, 40))); continue }
      const v = l.slice(i + 1).replace(/^[ \t]+|[ \t]+$/g, '')
      if (/[\x00-\x08\x0a-\x1f\x7f]/.test(v)) bad.push(`control character in the value of ${k}`)
      ;(h[k.toLowerCase()] ||= []).push(v)
    }
    const te = h['transfer-encoding'], cl = h['content-length']
    if (rl[3] === '1' && (h.host || []).length !== 1) bad.push(`${(h.host || []).length} Host fields`)
    else if (h.host && /[\s,/\\@?#]/.test(h.host[0])) bad.push('Host ' + JSON.stringify(h.host[0]))
    if (te && cl) bad.push('both Transfer-Encoding and Content-Length')
    if (te && (te.length > 1 || te[0].toLowerCase() !== 'chunked')) bad.push('Transfer-Encoding ' + JSON.stringify(te))
    if (te && rl[3] === '0') bad.push('Transfer-Encoding in HTTP/1.0')
    if (cl && (cl.length > 1 || !/^[0-9]+$/.test(cl[0]))) bad.push('Content-Length ' + JSON.stringify(cl))
    for (const k of Object.keys(h)) if (/^(transfer.encoding|content.length)$/.test(k) && !['transfer-encoding', 'content-length'].includes(k)) bad.push('look-alike field ' + k)
    p = e + 4
    if (te) {
      for (;;) {
        const f = find(b, '\r\n', p)
        if (f < 0) { if (!/^[0-9a-fA-F]*[\r]?$/.test(b.subarray(p).toString('latin1'))) bad.push('chunk size line ' + JSON.stringify(b.subarray(p, p + 20).toString('latin1'))); return bad }
        const l = b.subarray(p, f).toString('latin1'), m = /^([0-9a-fA-F]+)(?:;[\t\x20-\x7e\x80-\xff]*)?$/.exec(l)
        if (!m || m[1].length > 15) { bad.push('chunk size ' + JSON.stringify(l.slice(0, 30))); return bad }
        const n = parseInt(m[1], 16); p = f + 2
        if (n === 0) {
          for (;;) { const g = find(b, '\r\n', p); if (g < 0) return bad; const t = b.subarray(p, g).toString('latin1'); p = g + 2; if (!t) break; if (!TOKEN.test(t.split(':')[0])) bad.push('trailer ' + JSON.stringify(t.slice(0, 30))); if (/^(content-length|transfer-encoding|host)\s*:/i.test(t)) bad.push('forbidden trailer ' + t.slice(0, 30)) }
          break
        }
        p += n
        if (p >= b.length) return bad
        if (b.length >= p + 2 && b.subarray(p, p + 2).toString('latin1') !== '\r\n') { bad.push('chunk without CRLF'); return bad }
        p += 2
      }
    } else if (cl && cl.length === 1 && /^[0-9]+$/.test(cl[0])) p += Number(cl[0])
  }
  return bad
}
if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) { await start(+process.argv[2]); console.log('recorder on ' + process.argv[2]) }
