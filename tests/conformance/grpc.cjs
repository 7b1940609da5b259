#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// gRPC through the proxy with the real @grpc/grpc-js client and server.
//   grpc.cjs serve PORT            the origin (h2c)
//   grpc.cjs check HOST:PORT       the client's checks through the proxy (h2c), prints 'N passed, M failed'
'use strict'
const grpc = require('@grpc/grpc-js'), loader = require('@grpc/proto-loader'), path = require('path')
const pkg = grpc.loadPackageDefinition(loader.loadSync(path.join(__dirname, 'check.proto'), { keepCase: true, longs: Number, defaults: true }))
const [, , mode, where] = process.argv

function serve () {
  const s = new grpc.Server({ 'grpc.max_receive_message_length': -1, 'grpc.max_send_message_length': -1 })
  const meta = call => {
    const m = new grpc.Metadata()
    for (const v of call.metadata.get('x-echo')) m.add('x-echo', v)
    for (const v of call.metadata.get('x-echo-bin')) m.add('x-echo-bin', v)
    return m
  }
  s.addService(pkg.check.Echo.service, {
    Unary (call, cb) {
      const r = call.request
      call.sendMetadata(meta(call))
      const t = new grpc.Metadata(); t.set('x-trailer', 'end')
      if (r.status) return cb({ code: r.status, details: r.text, metadata: t })
      setTimeout(() => cb(null, { text: r.text, data: Buffer.alloc(r.reply_size, 7) }, t), r.delay_ms)
    },
    ServerStream (call) {
      let i = 0
      const next = () => {
        if (call.cancelled) return
        if (i >= call.request.count) { if (call.request.status) call.emit('error', { code: call.request.status, details: 'after ' + i }); else call.end(); return }
        call.write({ text: String(i++), data: Buffer.alloc(call.request.reply_size, 7) }); setTimeout(next, call.request.delay_ms)
      }
      next()
    },
    ClientStream (call, cb) { let n = 0, b = 0; call.on('data', d => { n++; b += d.data.length }).on('end', () => cb(null, { text: `${n} ${b}` })).on('error', () => {}) },
    Bidi (call) { call.on('data', d => call.write({ text: d.text, data: d.data })).on('end', () => call.end()).on('error', () => {}) }
  })
  s.bindAsync('127.0.0.1:' + where, grpc.ServerCredentials.createInsecure(), e => { if (e) { console.error(String(e)); process.exit(1) } })
}

async function check () {
  const c = new pkg.check.Echo(where, grpc.credentials.createInsecure(), { 'grpc.max_receive_message_length': -1, 'grpc.max_send_message_length': -1 })
  const eq = (a, b, what) => { if (a !== b) throw new Error(`${what}: ${a}, not ${b}`) }
  const dl = s => ({ deadline: Date.now() + s * 1000 })
  const unary = (req, md = new grpc.Metadata(), o = dl(8)) => new Promise(resolve => {
    const out = {}
    const call = c.Unary(req, md, o, (e, r) => { out.err = e; out.res = r; setImmediate(() => resolve(out)) })
    call.on('metadata', m => { out.md = m }).on('status', s => { out.status = s })
  })
  const stream = (req, o = dl(8)) => new Promise(resolve => {
    const got = []
    c.ServerStream(req, o).on('data', d => got.push(d)).on('error', e => { resolve({ got, code: e.code, details: e.details }) }).on('end', () => setImmediate(() => resolve({ got, code: 0 })))
  })
  const tests = {
    'empty unary': async () => eq((await unary({})).res.text, '', 'text'),
    'large unary 300 kB up, 300 kB down': async () => { const r = await unary({ data: Buffer.alloc(300000), reply_size: 300000 }); eq(r.res?.data.length, 300000, 'bytes') },
    'very large unary 8 MB up and down': async () => { const r = await unary({ data: Buffer.alloc(8 << 20), reply_size: 8 << 20 }, undefined, dl(20)); eq(r.res?.data.length, 8 << 20, 'bytes') },
    'custom metadata and binary metadata come back': async () => {
      const m = new grpc.Metadata(); m.set('x-echo', 'tést'.normalize('NFD').replace(/[^\x20-\x7e]/g, '')); m.set('x-echo-bin', Buffer.from([0, 1, 2, 255]))
      const r = await unary({ text: 'a' }, m); eq(r.md.get('x-echo')[0], 'test', 'x-echo'); eq(r.md.get('x-echo-bin')[0].toString('hex'), '000102ff', 'x-echo-bin')
    },
    'trailing metadata comes back': async () => eq((await unary({ text: 'a' })).status.metadata.get('x-trailer')[0], 'end', 'trailer'),
    'status code and message': async () => { const r = await unary({ status: 5, text: 'not there' }); eq(r.err.code, 5, 'code'); eq(r.err.details, 'not there', 'message') },
    'special characters in status message': async () => { const r = await unary({ status: 2, text: '\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n' }); eq(r.err.code, 2, 'code'); eq(r.err.details, '\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n', 'message') },
    'trailers-only error keeps its metadata': async () => eq((await unary({ status: 7, text: 'x' })).err.metadata.get('x-trailer')[0], 'end', 'trailer'),
    'unimplemented method': async () => { const r = await new Promise(resolve => c.makeUnaryRequest('/check.Echo/Nope', x => Buffer.from(x), x => x, 'x', dl(8), (e, v) => resolve(e))); eq(r.code, 12, 'code') },
    'unimplemented service': async () => { const r = await new Promise(resolve => c.makeUnaryRequest('/check.Nobody/Nope', x => Buffer.from(x), x => x, 'x', dl(8), (e, v) => resolve(e))); eq(r.code, 12, 'code') },
    'deadline exceeded': async () => eq((await unary({ delay_ms: 3000 }, undefined, dl(0.4))).err.code, 4, 'code'),
    'cancel after begin': async () => { const r = await new Promise(resolve => { const k = c.ClientStream(dl(8), e => resolve(e)); setTimeout(() => k.cancel(), 100) }); eq(r.code, 1, 'code') },
    'cancel after first response': async () => {
      const code = await new Promise(resolve => { const k = c.Bidi(dl(8)); k.on('data', () => k.cancel()).on('error', e => resolve(e.code)).on('end', () => {}); k.write({ text: 'x' }) }); eq(code, 1, 'code')
    },
    'server streaming, 100 messages in order': async () => { const r = await stream({ count: 100, reply_size: 1000 }); eq(r.code, 0, 'code'); eq(r.got.map(x => x.text).join(), [...Array(100).keys()].join(), 'order') },
    'server streaming is not held back': async () => {
      const t0 = Date.now(); let first = 0
      await new Promise((resolve, reject) => c.ServerStream({ count: 5, delay_ms: 200 }, dl(8)).on('data', () => { first ||= Date.now() - t0 }).on('end', resolve).on('error', reject))
      if (first > 500) throw new Error(`the first message took ${first} ms`)
    },
    'server streaming that ends in an error': async () => { const r = await stream({ count: 3, status: 9 }); eq(r.got.length, 3, 'messages'); eq(r.code, 9, 'code') },
    'deadline inside a server stream': async () => { const r = await stream({ count: 100, delay_ms: 100 }, dl(0.6)); eq(r.code, 4, 'code'); if (!r.got.length) throw new Error('no message before the deadline') },
    'client streaming, 4 sizes': async () => { const r = await new Promise((resolve, reject) => { const k = c.ClientStream(dl(8), (e, v) => e ? reject(e) : resolve(v)); for (const n of [27182, 8, 1828, 45904]) k.write({ data: Buffer.alloc(n) }); k.end() }); eq(r.text, '4 74922', 'sum') },
    'client streaming, 8 MB in 64 kB pieces': async () => { const r = await new Promise((resolve, reject) => { const k = c.ClientStream(dl(20), (e, v) => e ? reject(e) : resolve(v)); for (let i = 0; i < 128; i++) k.write({ data: Buffer.alloc(65536) }); k.end() }); eq(r.text, '128 8388608', 'sum') },
    'ping pong, 50 turns': async () => {
      const n = await new Promise((resolve, reject) => { let i = 0; const k = c.Bidi(dl(8)); k.on('data', () => { if (++i === 50) k.end(); else k.write({ text: String(i) }) }).on('end', () => resolve(i)).on('error', reject); k.write({ text: '0' }) }); eq(n, 50, 'turns')
    },
    'empty bidirectional stream': async () => { const n = await new Promise((resolve, reject) => { let i = 0; const k = c.Bidi(dl(8)); k.on('data', () => i++).on('end', () => resolve(i)).on('error', reject); k.end() }); eq(n, 0, 'messages') },
    '100 calls at once': async () => { const r = await Promise.all(Array.from({ length: 100 }, (_, i) => unary({ text: String(i), delay_ms: 50 }))); eq(r.filter((x, i) => x.res?.text === String(i)).length, 100, 'answers') },
    '300 calls at once (over the stream limit)': async () => { const r = await Promise.all(Array.from({ length: 300 }, (_, i) => unary({ text: String(i), delay_ms: 20 }, undefined, dl(15)))); eq(r.filter((x, i) => x.res?.text === String(i)).length, 300, 'answers') },
    'the channel still works after all that': async () => eq((await unary({ text: 'ok' })).res.text, 'ok', 'text')
  }
  let ok = 0, bad = 0
  for (const [n, f] of Object.entries(tests)) {
    try { await Promise.race([f(), new Promise((resolve, reject) => setTimeout(() => reject(new Error('no answer in 25 s')), 25000).unref())]); ok++ } catch (e) { bad++; console.log(`FAIL ${n}: ${e.message}`) }
  }
  c.close()
  console.log(`${ok} passed, ${bad} failed`); process.exit(bad ? 1 : 0)
}
process.on('uncaughtException', e => console.log('stray error: ' + e.message))
if (mode !== 'serve' && !/^(127\.|localhost:|\[::1\]:)/.test(where || '')) { console.error('grpc.cjs serve PORT | check HOST(loopback):PORT'); process.exit(2) }
mode === 'serve' ? serve() : check()
