#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Sends a corpus of hostile requests and judges only what the proxy hands on to its origin:
// whatever it decides, the bytes it forwards must be requests that a strict RFC 9112 recipient reads in one way only.
//   smuggle.mjs HOST PORT ORIGIN_PORT CORPUS.jsonl... [--sample N] [--quiet MS]
// CORPUS lines: {"name":..., "hex":...} (corpora.py and http11probe.mjs --dump write them).
// The proxy at HOST:PORT forwards to 127.0.0.1:ORIGIN_PORT, where this starts the recording origin.
import fs from 'fs'
import net from 'net'
import { start, strict } from './recorder.mjs'
const args = process.argv.slice(2), flag = (n, d) => { const i = args.indexOf('--' + n); return i < 0 ? d : +args.splice(i, 2)[1] }
const sample = flag('sample', 1), quiet = flag('quiet', 120), [host, port, oport, ...files] = args
if (!files.length || !/^(127\.|localhost$|::1$)/.test(host)) { console.error('smuggle.mjs HOST(loopback) PORT ORIGIN_PORT CORPUS...'); process.exit(2) }
const rec = await start(+oport)
const all = files.flatMap(f => fs.readFileSync(f, 'utf8').trim().split('\n').map(l => JSON.parse(l))).filter((x, i) => i % sample === 0)
const sleep = ms => new Promise(resolve => setTimeout(resolve, ms))
function send (bytes) { // the answer, once the peer is silent for a while or closes
  return new Promise(resolve => {
    const got = []; let t
    const s = net.connect({ host, port: +port, noDelay: true })
    const done = how => { clearTimeout(t); s.destroy(); resolve({ how, got: Buffer.concat(got).toString('latin1') }) }
    const arm = ms => { clearTimeout(t); t = setTimeout(() => done('silent'), ms) }
    s.on('connect', () => { s.write(bytes); arm(quiet * 2) }).on('data', d => { got.push(d); arm(quiet / 3) }).on('end', () => done('closed')).on('error', e => done(e.code))
  })
}
// Problems that let two recipients disagree on where a request ends, and the rest.
const framing = p => /^(stray|request line|obs-fold|field name|both|Transfer-Encoding|Content-Length|look-alike|chunk)/.test(p)
let ok = 0, bad = 0, framed = 0, forwarded = 0, dead = 0
const kinds = {}, status = {}
for (const c of all) {
  const r = await send(Buffer.from(c.hex, 'hex'))
  if (r.how === 'ECONNREFUSED') { dead++; bad++; console.log(`FAIL ${c.name}: the proxy no longer accepts`); await sleep(500); if (dead > 3) break; continue }
  const m = /^HTTP\/1\.[01] (\d{3})/.exec(r.got); const k = m ? m[1] : 'none'; status[k] = (status[k] || 0) + 1
  await sleep(3)
  const conns = [...rec.conns]; let problem = null
  if (conns.some(x => x.bytes.length)) forwarded++
  for (const x of conns) { const p = strict(x.bytes); if (p.length) problem = p.find(framing) || p[0] }
  rec.drop()
  await sleep(2)
  if (problem) { bad++; if (framing(problem)) framed++; const key = (framing(problem) ? '(framing) ' : '') + problem.split(' ').slice(0, framing(problem) ? 4 : 3).join(' '); (kinds[key] ||= []).push(c.name) } else ok++
}
const sane = await send(Buffer.from('GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'))
if (!/^HTTP\/1\.1 200/.test(sane.got)) { bad++; console.log('FAIL a plain GET after the corpus: ' + sane.got.slice(0, 40)) } else ok++
for (const [k, v] of Object.entries(kinds)) console.log(`FAIL forwarded ${k}...: ${v.length} payloads, e.g. ${v.slice(0, 3).map(x => JSON.stringify(x)).join(' ')}`)
console.log(`framing problems ${framed}, other problems ${bad - framed}`)
console.log(`${all.length} payloads, ${forwarded} reached the origin; answers ${JSON.stringify(status)}`)
console.log(`${ok} passed, ${bad} failed`)
process.exit(bad ? 1 : 0)
