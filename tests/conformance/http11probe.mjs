#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 compliance, smuggling and malformed input: runs the 215 cases of MDA2AV's Http11Probe from its sources.
//   HTTP11PROBE=path/to/checkout http11probe.mjs HOST PORT [--origin PORT] [--only ID,ID] [--json FILE] [--timeout MS] [--dump FILE]
// --origin starts the lenient origin (recorder.mjs) at the port that the proxy forwards to, so that a verdict is the proxy's own.
import fs from 'fs'
import net from 'net'
import path from 'path'
import { load, dictionary } from './csharp.mjs'
const [host, port] = process.argv.slice(2)
const opt = n => { const i = process.argv.indexOf('--' + n); return i > 0 ? process.argv[i + 1] : undefined }
if (!process.env.HTTP11PROBE || !port) { console.error('HTTP11PROBE=checkout http11probe.mjs HOST PORT'); process.exit(2) }
if (!/^(127\.|localhost$|::1$)/.test(host)) { console.error('loopback only'); process.exit(2) }
const timeout = +(opt('timeout') || 5000)
const dir = path.join(process.env.HTTP11PROBE, 'src/Http11Probe/TestCases/Suites')
const ctx = { Host: host, Port: +port, HostHeader: +port === 80 ? host : `${host}:${port}` }
const cases = []
for (const f of ['Compliance', 'Smuggling', 'MalformedInput', 'Normalization', 'Capabilities', 'Cookie']) {
  const { members } = load(fs.readFileSync(path.join(dir, f + 'Suite.cs'), 'utf8'))
  for (const g of ['GetTestCases', 'GetSequenceTestCases']) if (members[g]) cases.push(...members[g]())
}

if (opt('origin')) await (await import('./recorder.mjs')).start(+opt('origin'))
const sleep = ms => new Promise(resolve => setTimeout(resolve, ms))
class Client {
  constructor () { this.buf = Buffer.alloc(0); this.ended = false; this.wake = () => {} }
  connect () {
    return new Promise((resolve, reject) => {
      this.s = net.connect({ host, port: +port, noDelay: true, allowHalfOpen: true }, resolve)
      this.s.on('data', d => { this.buf = Buffer.concat([this.buf, d]); this.wake() })
      this.s.on('end', () => { this.ended = true; this.wake() }).on('error', e => { this.ended = true; reject(e); this.wake() }).on('close', () => { this.ended = true; this.wake() })
    })
  }
  async send (b) { if (this.s.writable) await new Promise(resolve => this.s.write(b, () => resolve())) }
  async read () { // headers, 100 ms for the rest, then what there is
    const until = Date.now() + timeout
    while (!this.ended && this.buf.indexOf('\r\n\r\n') < 0 && this.buf.length < 65536) {
      const left = until - Date.now()
      if (left <= 0) return ['TimedOut', this.take()]
      await Promise.race([new Promise(resolve => { this.wake = resolve }), sleep(left)])
    }
    if (this.ended && this.buf.indexOf('\r\n\r\n') < 0) return ['ClosedByServer', this.take()]
    await sleep(100)
    return ['Open', this.take()]
  }
  take () { const b = this.buf.subarray(0, 65536); this.buf = Buffer.alloc(0); return b }
  async state (s) { if (s !== 'Open') return s; await sleep(50); return this.ended && !this.buf.length ? 'ClosedByServer' : 'Open' }
  close () { this.s.destroy() }
}
function parse (b) {
  if (!b.length) return null
  const text = b.toString('latin1').replace(/[\x80-\xff]/g, '?'), m = /^([^ \n]*) ([^ \r\n]*)(?: ([^\n]*))?\r?\n/.exec(text)
  if (!m || !/^\s*[+-]?\d+\s*$/.test(m[2])) return null
  const Headers = dictionary(true)
  for (const line of text.slice(m[0].length).split('\n')) {
    const l = line.replace(/\r+$/, ''); if (!l) break
    const i = l.indexOf(':'); if (i <= 0) continue
    const n = l.slice(0, i).trim(), v = l.slice(i + 1).trim(), old = Headers.get(n)
    Headers.set(n, old === null ? v : old + ', ' + v)
  }
  const e = text.indexOf('\r\n\r\n'), body = e >= 0 && e + 4 < text.length ? text.slice(e + 4, e + 4 + 4096) : null
  return { StatusCode: +m[2], ReasonPhrase: (m[3] || '').trim(), HttpVersion: m[1], Headers, IsEmpty: false, RawResponse: text.slice(0, 8192), Body: body }
}
function evaluate (x, r, state) {
  if (x.CustomValidator) return x.CustomValidator(r, state)
  if (x.ExpectedConnectionState && state === x.ExpectedConnectionState) return 'Pass'
  if (x.AllowConnectionClose && state === 'ClosedByServer' && !r) return 'Pass'
  if (!r) return x.AllowConnectionClose ? 'Pass' : 'Fail'
  return x.ExpectedStatus && r.StatusCode >= x.ExpectedStatus[0] && r.StatusCode <= x.ExpectedStatus[1] ? 'Pass' : 'Fail'
}
async function single (t) {
  const c = new Client(); await c.connect()
  try {
    await c.send(Buffer.from(t.PayloadFactory(ctx))); const [s, b] = await c.read(); const r = parse(b), state = await c.state(s)
    return [evaluate(t.Expected, r, state), r, state]
  } finally { c.close() }
}
async function sequence (t) {
  const c = new Client(); await c.connect()
  try {
    const done = []; let state = 'Open', last = null
    for (const [i, step] of t.Steps.entries()) {
      const Label = step.Label ?? `Step ${i + 1}`
      if (state !== 'Open') { done.push({ Label, Executed: false, Response: null, ConnectionState: state }); continue }
      const parts = step.SendPartsFactory?.(ctx) ?? [{ PayloadFactory: step.DynamicPayloadFactory ? x => step.DynamicPayloadFactory(x, done) : step.PayloadFactory }]
      for (const p of parts) {
        await c.send(Buffer.from(p.PayloadFactory(ctx)))
        if (p.DelayAfter) { await sleep(p.DelayAfter); if (c.ended) { state = 'ClosedByServer'; break } }
      }
      const [s, b] = await c.read(); const r = parse(b); if (r) last = r
      state = await c.state(s); done.push({ Label, Executed: true, Response: r, ConnectionState: state, RawRequest: '' })
    }
    return [t.Validator(done), last, state]
  } finally { c.close() }
}
const dump = opt('dump')
if (dump) { // the single payloads as a corpus: one JSON object a line
  fs.writeFileSync(dump, cases.filter(t => !t.Steps).map(t => JSON.stringify({ name: t.Id, hex: Buffer.from(t.PayloadFactory(ctx)).toString('hex') })).join('\n') + '\n')
  console.log(`${cases.filter(t => !t.Steps).length} payloads written`); process.exit(0)
}
const only = opt('only')?.toUpperCase().split(','), n = { Pass: 0, Warn: 0, Fail: 0, Error: 0 }, by = {}, rows = []
let unscored = 0
for (const t of cases) {
  if (only && !only.includes(t.Id.toUpperCase())) continue
  let v, r = null, s = ''
  try { [v, r, s] = await (t.Steps ? sequence(t) : single(t)) } catch (e) { v = 'Error'; s = e.message }
  rows.push({ id: t.Id, category: t.Category, level: t.RfcLevel || 'Must', scored: t.Scored !== false, verdict: v, status: r?.StatusCode ?? null, state: s })
  if (t.Scored === false) { unscored++; continue }
  n[v]++; const k = by[t.Category] ||= { Pass: 0, Warn: 0, Fail: 0, Error: 0 }; k[v]++
  if (v === 'Fail' || v === 'Error' || (only && v !== 'Pass')) console.log(`${v === 'Warn' ? 'WARN' : 'FAIL'} ${t.Id} [${t.RfcLevel || 'Must'}] got ${r?.StatusCode ?? 'nothing'} ${s}: ${t.Description.slice(0, 90)}`)
}
for (const [k, v] of Object.entries(by)) console.log(`${k}: ${v.Pass} passed, ${v.Warn} allowed but lenient, ${v.Fail + v.Error} failed`)
if (opt('json')) fs.writeFileSync(opt('json'), JSON.stringify(rows, null, 1))
console.log(`strict passes ${n.Pass}, lenient (warn) ${n.Warn}, unscored ${unscored}`)
console.log(`${n.Pass + n.Warn} passed, ${n.Fail + n.Error} failed`)
process.exit(n.Fail + n.Error ? 1 : 0)
