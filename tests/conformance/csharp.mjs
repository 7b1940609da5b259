// SPDX-License-Identifier: Apache-2.0
// Runs the small, regular subset of C# in which Http11Probe's test cases are written:
// a tokenizer and a recursive-descent translator to JavaScript, and the few library calls they use.
const PUNCT = ['??=', '=>', '==', '!=', '<=', '>=', '&&', '||', '??', '?.', '..', '++', '--', '+=', '-=', '*=']
const ESC = { n: '\n', r: '\r', t: '\t', 0: '\0', a: '\x07', b: '\b', v: '\v', f: '\f', e: '\x1b' }

function tokens (src) {
  const out = []
  let i = 0
  const escape = () => { // at the character after the backslash
    const c = src[i++]
    if (c === 'x') { const m = /^[0-9a-fA-F]{1,4}/.exec(src.slice(i)); i += m[0].length; return String.fromCharCode(parseInt(m[0], 16)) }
    if (c === 'u') { const h = src.slice(i, i + 4); i += 4; return String.fromCharCode(parseInt(h, 16)) }
    return c in ESC ? ESC[c] : c
  }
  const string = interpolated => { // at the character after the quote
    const parts = []; let s = ''
    for (;;) {
      const c = src[i++]
      if (c === undefined) throw new Error('string without end')
      if (c === '"') break
      if (c === '\\') { s += escape(); continue }
      if (interpolated && c === '{') {
        if (src[i] === '{') { s += '{'; i++; continue }
        let depth = 0; const from = i
        for (; ;i++) {
          const d = src[i]
          if (d === '"') { i++; string(src[i - 2] === '$'); i-- } else if (d === '(' || d === '[' || d === '{') depth++
          else if (d === ')' || d === ']') depth--
          else if (d === '}') { if (depth === 0) break; depth-- } else if (d === ':' && depth === 0) break
        }
        const code = src.slice(from, i)
        if (src[i] === ':') i = src.indexOf('}', i)
        i++; parts.push(s, tokens(code)); s = ''; continue
      }
      if (interpolated && c === '}' && src[i] === '}') i++
      s += c
    }
    parts.push(s)
    return parts
  }
  while (i < src.length) {
    const c = src[i]
    if (/\s/.test(c)) { i++; continue }
    if (src.startsWith('//', i)) { i = src.indexOf('\n', i); if (i < 0) break; continue }
    if (src.startsWith('/*', i)) { i = src.indexOf('*/', i) + 2; continue }
    if (c === '"' || (c === '$' && src[i + 1] === '"')) { const dollar = c === '$'; i += dollar ? 2 : 1; const parts = string(dollar); let u8 = false; if (src.startsWith('u8', i)) { i += 2; u8 = true } out.push({ t: 'str', parts, u8 }); continue }
    if (c === "'") { i++; let v = src[i++]; if (v === '\\') v = escape(); i++; out.push({ t: 'chr', v }); continue }
    let m
    if ((m = /^(0[xX][0-9a-fA-F_]+|[0-9][0-9_]*(\.[0-9]+)?)/.exec(src.slice(i, i + 40)))) { i += m[0].length; out.push({ t: 'num', v: m[0].replace(/_/g, '') }); continue }
    if ((m = /^@?[A-Za-z_][A-Za-z0-9_]*/.exec(src.slice(i, i + 120)))) { i += m[0].length; out.push({ t: 'id', v: m[0].replace('@', '') }); continue }
    const p = PUNCT.find(x => src.startsWith(x, i)) || c
    i += p.length; out.push({ t: 'op', v: p })
  }
  return out
}

const PRIM = new Set(['byte', 'int', 'char', 'long', 'uint', 'short', 'ushort', 'double'])
class Translator {
  constructor (toks) { this.k = toks; this.p = 0; this.hoist = [[]] }
  get c () { return this.k[this.p] || { t: 'eof', v: '' } }
  at (v, n = 0) { const x = this.k[this.p + n]; return !!x && x.t !== 'str' && x.t !== 'chr' && x.v === v }
  eat (v) { if (this.at(v)) { this.p++; return true } return false }
  need (v) { if (!this.eat(v)) throw new Error(`'${v}' wanted, '${this.c.v ?? this.c.t}' found, near ${this.k.slice(Math.max(0, this.p - 12), this.p + 4).map(x => x.v ?? JSON.stringify(x.parts?.[0])).join(' ')}`) }
  id () { const x = this.c; if (x.t !== 'id') throw new Error('name wanted, found ' + (x.v ?? x.t)); this.p++; return x.v }
  type () { // skips a type; false (and no move) where there is none
    const from = this.p
    if (this.eat('(')) { let d = 1; while (d && this.p < this.k.length) { if (this.at('(')) d++; if (this.at(')')) d--; this.p++ } } else {
      if (this.c.t !== 'id') return false
      this.p++
      while (this.at('.') && this.k[this.p + 1]?.t === 'id') this.p += 2
      if (this.at('<')) { let d = 0; do { if (this.at('<')) d++; else if (this.at('>')) d--; else if (!(this.c.t === 'id' || ['?', ',', '.', '[', ']', '(', ')'].includes(this.c.v))) { this.p = from; return false } this.p++ } while (d && this.p < this.k.length) }
    }
    this.eat('?')
    while (this.at('[') && this.at(']', 1)) this.p += 2
    this.eat('?')
    return true
  }
  decl () { // is this 'Type name =' or 'Type name;'?
    const from = this.p; const ok = this.type() && this.c.t === 'id' && (this.at('=', 1) || this.at(';', 1)); this.p = from; return ok
  }
  block () { this.need('{'); this.hoist.push([]); let s = ''; while (!this.at('}')) s += this.stmt(); this.p++; const h = this.hoist.pop(); return '{' + (h.length ? 'let ' + [...new Set(h)].join(',') + ';' : '') + s + '}' }
  stmt () {
    if (this.at('{')) return this.block()
    if (this.eat(';')) return ';'
    if (this.eat('if')) { this.need('('); const e = this.expr(); this.need(')'); const a = this.stmt(); return `if(${e})${a}` + (this.eat('else') ? ` else ${this.stmt()}` : '') }
    if (this.eat('while')) { this.need('('); const e = this.expr(); this.need(')'); return `while(${e})${this.stmt()}` }
    if (this.eat('for')) { this.need('('); const a = this.stmt(); const b = this.at(';') ? '' : this.expr(); this.need(';'); const d = this.at(')') ? '' : this.expr(); this.need(')'); return `for(${a}${b};${d})${this.stmt()}` }
    if (this.eat('foreach')) {
      this.need('('); let n
      if (this.at('var') && this.at('(', 1)) { this.p += 2; const v = []; do v.push(this.id()); while (this.eat(',')); this.need(')'); n = `[${v}]` } else { this.type(); n = this.id() }
      this.need('in'); const e = this.expr(); this.need(')'); return `for(const ${n} of ${e})${this.stmt()}`
    }
    if (this.eat('return')) { const e = this.at(';') ? '' : this.expr(); this.need(';'); return `return ${e};` }
    if (this.at('yield') && this.at('return', 1)) { this.p += 2; const e = this.expr(); this.need(';'); return `yield ${e};` }
    if (this.at('yield') && this.at('break', 1)) { this.p += 2; this.need(';'); return 'return;' }
    if (this.eat('throw')) { const e = this.expr(); this.need(';'); return `throw ${e};` }
    if (this.at('break') || this.at('continue')) { const v = this.id(); this.need(';'); return v + ';' }
    this.eat('const')
    if (this.at('var') && this.at('(', 1)) { this.p += 2; const v = []; do { const n = this.id(); v.push(n === '_' ? '' : n) } while (this.eat(',')); this.need(')'); this.need('='); const e = this.expr(); this.need(';'); return `let [${v}]=${e};` }
    if (this.decl()) { this.type(); let s = 'let '; do { s += this.id(); if (this.eat('=')) s += '=' + this.expr(); s += ',' } while (this.eat(',')); this.need(';'); return s.slice(0, -1) + ';' }
    const e = this.expr(); this.need(';'); return e + ';'
  }
  lambda () { // null where there is none
    const from = this.p; let args
    if (this.c.t === 'id' && this.at('=>', 1)) args = [this.id()]
    else if (this.at('(')) {
      this.p++; args = []
      while (!this.at(')')) { if (this.c.t !== 'id') { this.p = from; return null } const q = this.p; this.p++; if (!(this.at(',') || this.at(')'))) { this.p = q; if (!this.type() || this.c.t !== 'id') { this.p = from; return null } this.p++ } args.push(this.k[this.p - 1].v); this.eat(',') }
      this.p++
      if (!this.at('=>')) { this.p = from; return null }
    } else return null
    this.need('=>'); let i = 0
    args = args.map(a => a === '_' ? '_' + i++ : a)
    return `((${args})=>${this.at('{') ? this.block() : '(' + this.expr() + ')'})`
  }
  expr () {
    const l = this.lambda(); if (l) return l
    const a = this.tern()
    for (const o of ['=', '+=', '-=', '*=', '??=']) if (this.eat(o)) return `${a}${o}${this.expr()}`
    return a
  }
  tern () {
    const a = this.coal()
    if (!this.at('?')) return a
    this.p++; const b = this.expr(); this.need(':'); return `(${a}?${b}:${this.expr()})`
  }
  coal () { const a = this.or(); return this.eat('??') ? `(${a}??${this.coal()})` : a }
  or () { let a = this.and(); while (this.eat('||')) a = `(${a}||${this.and()})`; return a }
  and () { let a = this.eq(); while (this.eat('&&')) a = `(${a}&&${this.eq()})`; return a }
  eq () {
    let a = this.rel()
    for (;;) if (this.eat('==')) a = `($eq(${a},${this.rel()}))`; else if (this.eat('!=')) a = `(!$eq(${a},${this.rel()}))`; else return a
  }
  rel () {
    let a = this.add()
    for (;;) {
      if (this.eat('is')) a = `($v=>${this.pat()})(${a})`
      else { const o = ['<=', '>=', '<', '>'].find(x => this.at(x)); if (!o) return a; this.p++; a = `(${a}${o}${this.add()})` }
    }
  }
  pat () { let a = this.patAnd(); while (this.eat('or')) a = `(${a}||${this.patAnd()})`; return a }
  patAnd () { let a = this.patOne(); while (this.eat('and')) a = `(${a}&&${this.patOne()})`; return a }
  patOne () {
    if (this.eat('not')) return `!${this.patOne()}`
    if (this.eat('(')) { const a = this.pat(); this.need(')'); return `(${a})` }
    if (this.eat('null')) return '($v==null)'
    if (this.eat('{')) { const c = ['$v!=null']; while (!this.at('}')) { const n = this.id(); this.need(':'); c.push(`($v=>${this.pat()})($v.${n})`); this.eat(',') } this.p++; return `(${c.join('&&')})` }
    const o = ['<=', '>=', '<', '>'].find(x => this.at(x))
    if (o) { this.p++; return `($v!=null&&$v${o}${this.add()})` }
    return `$eq($v,${this.add()})`
  }
  add () { let a = this.mul(); for (;;) if (this.eat('+')) a = `(${a}+${this.mul()})`; else if (this.eat('-')) a = `(${a}-${this.mul()})`; else return a }
  mul () { let a = this.unary(); for (;;) if (this.eat('*')) a = `(${a}*${this.unary()})`; else if (this.eat('/')) a = `Math.trunc(${a}/${this.unary()})`; else if (this.eat('%')) a = `(${a}%${this.unary()})`; else return a }
  unary () {
    if (this.eat('!')) return `!${this.unary()}`
    if (this.eat('-')) return `-${this.unary()}`
    if (this.eat('++')) return `++${this.unary()}`
    if (this.at('(') && this.c.t === 'op' && PRIM.has(this.k[this.p + 1]?.v) && this.at(')', 2)) { const ty = this.k[this.p + 1].v; this.p += 3; return `$cast(${JSON.stringify(ty)},${this.unary()})` }
    return this.postfix(this.primary())
  }
  args (end = ')') {
    const a = []
    while (!this.at(end)) {
      if (this.eat('out')) { if (this.at('var') || (this.k[this.p + 1]?.t === 'id')) this.type(); const n = this.id(); if (n === '_') a.push('$out(()=>{})'); else { this.hoist.at(-1).push(n); a.push(`$out($x=>{${n}=$x})`) } } else if (this.c.t === 'id' && this.at(':', 1)) { this.p += 2; a.push(this.expr()) } else a.push(this.expr())
      if (!this.eat(',')) break
    }
    this.need(end); return a
  }
  postfix (a) {
    for (;;) {
      if (this.eat('.')) { const n = this.id(); if (this.at('<')) { const q = this.p; this.p--; if (!(this.type() && this.at('('))) this.p = q } a += n === 'Count' && !this.at('(') ? '.length' : '.' + n } else if (this.eat('?.')) { a += '?.' + this.id() } else if (this.at('(')) { this.p++; a += `(${this.args()})` } else if (this.at('[')) { this.p++; a = this.index(a) } else if (this.eat('++')) a += '++'; else if (this.eat('--')) a += '--'; else if (this.at('!') && !this.at('=', 1)) this.p++; else return a
    }
  }
  index (a) {
    if (this.eat('..')) { const b = this.at(']') ? 'undefined' : this.expr(); this.need(']'); return `$slice(${a},0,${b})` }
    if (this.eat('^')) { const b = this.expr(); this.need(']'); return `${a}.at(-(${b}))` }
    const i = this.expr()
    if (this.eat('..')) { const b = this.at(']') ? 'undefined' : this.eat('^') ? '-' + this.expr() : this.expr(); this.need(']'); return `$slice(${a},${i},${b})` }
    this.need(']'); return `${a}[${i}]`
  }
  init () { // { A = b, C = d } as an object, { a, b } as an array
    this.need('{'); const a = []; let obj = false
    while (!this.at('}')) {
      if (this.c.t === 'id' && this.at('=', 1)) { obj = true; const n = this.id(); this.p++; a.push(`${n}:${this.at('{') ? this.init() : this.expr()}`) } else a.push(this.expr())
      if (!this.eat(',')) break
    }
    this.need('}'); return obj || !a.length ? `{${a}}` : `[${a}]`
  }
  str (tok) {
    const js = tok.parts.map((p, i) => i % 2 ? `$s(${new Translator(p).whole()})` : JSON.stringify(p)).join('+')
    return tok.u8 ? `$utf8(${js})` : `(${js})`
  }
  whole () { const e = this.expr(); if (this.p !== this.k.length) throw new Error('left over in an interpolation'); return e }
  primary () {
    const x = this.c
    if (x.t === 'str') { this.p++; return this.str(x) }
    if (x.t === 'chr') { this.p++; return JSON.stringify(x.v) }
    if (x.t === 'num') { this.p++; return x.v }
    if (this.eat('(')) { const a = [this.expr()]; while (this.eat(',')) a.push(this.expr()); this.need(')'); return a.length > 1 ? `[${a}]` : `(${a[0]})` }
    if (this.eat('[')) { const a = []; while (!this.at(']')) { a.push(this.eat('..') ? '...' + this.expr() : this.expr()); if (!this.eat(',')) break } this.need(']'); return `[${a}]` }
    if (this.eat('new')) {
      if (this.eat('[')) { this.need(']'); return this.init() }
      let n = ''
      if (this.c.t === 'id') { n = this.id(); while (this.eat('.')) n = this.id(); if (this.at('<')) { this.p--; this.type() } }
      if (this.at('[')) { this.p++; if (this.eat(']')) return `$arr(${JSON.stringify(n)},${this.init()})`; const e = this.expr(); this.need(']'); return `$arr(${JSON.stringify(n)},${e})` }
      if (n === 'string') { this.need('('); return `$repeat(${this.args()})` }
      let a = ''
      if (this.eat('(')) a = this.args().join(',')
      return `new ${n || 'List'}(${this.at('{') ? this.init() : a})`
    }
    if (x.t === 'id') { this.p++; return x.v === 'string' ? '$string' : x.v === 'int' ? '$int' : x.v }
    throw new Error(`expression wanted, '${x.v}' found`)
  }
  cls () { // the members of the first class
    while (!this.at('class')) this.p++
    this.p++; const name = this.id(); this.need('{'); let s = ''; const names = []
    while (!this.at('}')) {
      while (['private', 'public', 'internal', 'static', 'const', 'readonly', 'async', 'sealed'].some(v => this.at(v))) this.p++
      this.type(); const n = this.id(); names.push(n)
      if (this.eat('(')) {
        const ps = []
        while (!this.at(')')) { const rest = this.eat('params'); this.type(); ps.push((rest ? '...' : '') + this.id()); if (this.eat('=')) ps[ps.length - 1] += '=' + this.expr(); this.eat(',') }
        this.p++
        if (this.eat('=>')) { const e = this.expr(); this.need(';'); s += `function ${n}(${ps}){return ${e}}\n` } else { const b = this.block(); s += `function${b.includes('yield ') ? '*' : ''} ${n}(${ps})${b}\n` }
      } else { const e = this.eat('=') || this.eat('=>') ? this.expr() : 'undefined'; this.need(';'); s += `const ${n}=${e}\n` }
    }
    return { name, js: s + `return {${names}}` }
  }
}

// ---- the library calls
const ci = o => o && o.ignoreCase
const has = (proto, name, f) => Object.defineProperty(proto, name, { value: f, configurable: true })
function install () {
  const S = String.prototype, cmp = (a, b, o) => ci(o) ? a.toLowerCase() === b.toLowerCase() : a === b
  has(S, 'Contains', function (x, o) { return ci(o) ? this.toLowerCase().includes(x.toLowerCase()) : this.includes(x) })
  has(S, 'StartsWith', function (x, o) { return cmp(this.slice(0, x.length), x, o) })
  has(S, 'EndsWith', function (x, o) { return cmp(this.slice(-x.length), x, o) })
  has(S, 'Equals', function (x, o) { return cmp(String(this), x, o) })
  has(S, 'IndexOf', function (x, p) { return this.indexOf(x, typeof p === 'number' ? p : 0) })
  const strip = (s, set, l, r) => { let a = 0, b = s.length; const h = c => set.length ? set.includes(c) : /\s/.test(c); while (l && a < b && h(s[a])) a++; while (r && b > a && h(s[b - 1])) b--; return s.slice(a, b) }
  has(S, 'Trim', function (...c) { return strip(String(this), c, 1, 1) })
  has(S, 'TrimEnd', function (...c) { return strip(String(this), c, 0, 1) })
  has(S, 'TrimStart', function (...c) { return strip(String(this), c, 1, 0) })
  has(S, 'Split', function (x, o) { const a = this.split(x); return o === 1 ? a.filter(v => v.length) : a })
  has(S, 'Any', function (f) { return [...this].some(f) })
  has(S, 'Count', function (f) { return [...this].filter(f).length })
  has(S, 'ToString', function () { return String(this) }); has(Number.prototype, 'ToString', function (f) { return f && /^[xX]/.test(f) ? (f[0] === 'X' ? this.toString(16).toUpperCase() : this.toString(16)) : String(this) })
  has(S, 'ToUpperInvariant', function () { return this.toUpperCase() }); has(S, 'ToLowerInvariant', function () { return this.toLowerCase() })
  has(S, 'Replace', function (a, b) { return this.replaceAll(a, b) }); has(S, 'Substring', function (a, n) { return this.substr(a, n) })
  const A = Array.prototype
  has(A, 'Any', function (f = () => true) { return this.some(x => f(x)) }); has(A, 'All', function (f) { return this.every(x => f(x)) }); has(A, 'Count', function (f) { return this.filter(x => f(x)).length })
  has(A, 'Select', function (f) { return this.map((x, i) => f(x, i)) }); has(A, 'Where', function (f) { return this.filter(x => f(x)) }); has(A, 'ToArray', function () { return this }); has(A, 'ToList', function () { return this })
  has(A, 'Add', function (x) { this.push(x) }); has(A, 'Contains', function (x) { return this.includes(x) }); has(A, 'CopyTo', function (to, at) { this.forEach((v, i) => { to[at + i] = v }) })
  has(A, 'FirstOrDefault', function (f = () => true) { return this.find(x => f(x)) ?? null }); has(A, 'Last', function () { return this.at(-1) })
  for (const P of [S, A, Uint8Array.prototype]) Object.defineProperty(P, 'Length', { get () { return this.length }, configurable: true })
  has(Uint8Array.prototype, 'CopyTo', function (to, at) { this.forEach((v, i) => { to[at + i] = v }) })
}
export function dictionary (fold = false) {
  const m = new Map(), key = k => fold ? String(k).toLowerCase() : k
  const api = {
    TryGetValue: (k, out) => { const e = m.get(key(k)); out(e ? e.Value : null); return !!e },
    ContainsKey: k => m.has(key(k)), Add: (k, v) => m.set(key(k), pair(k, v)), set: (k, v) => m.set(key(k), pair(k, v)), get: k => m.get(key(k))?.Value ?? null,
    [Symbol.iterator]: () => m.values()
  }
  function pair (k, v) { const a = [k, v]; a.Key = k; a.Value = v; return a }
  return new Proxy(api, { get: (t, k) => k in t ? t[k] : t.get(k), set: (t, k, v) => { t.set(k, v); return true } })
}
class StringBuilder { constructor (s = '') { this.s = s } Append (x, n) { this.s += n === undefined ? String(x) : String(x).repeat(n); return this } AppendLine (x = '') { this.s += x + '\n'; return this } ToString () { return this.s } get Length () { return this.s.length } }
const ascii = { GetBytes: s => Uint8Array.from([...s].flatMap(c => c.length > 1 ? [63] : [c.charCodeAt(0) > 127 ? 63 : c.charCodeAt(0)])), GetByteCount: s => s.length, GetString: b => Buffer.from(b).toString('latin1').replace(/[\x80-\xff]/g, '?') }
const utf8 = { GetBytes: s => Uint8Array.from(Buffer.from(s)), GetByteCount: s => Buffer.byteLength(s), GetString: b => Buffer.from(b).toString() }
const latin1 = { GetBytes: s => Uint8Array.from(Buffer.from(s, 'latin1')), GetByteCount: s => s.length, GetString: b => Buffer.from(b).toString('latin1') }
class Random { constructor (seed = 1) { this.x = seed >>> 0 || 1 } Next (a, b) { this.x = (Math.imul(this.x, 1664525) + 1013904223) >>> 0; const [lo, hi] = b === undefined ? [0, a ?? 2 ** 31] : [a, b]; return lo + this.x % (hi - lo) } NextBytes (b) { for (let i = 0; i < b.length; i++) b[i] = this.Next(256) } }
const en = names => Object.fromEntries(names.map(n => [n, n]))
const record = () => class { constructor (o) { Object.assign(this, o) } }
const lib = {
  $eq: (a, b) => (a ?? null) === (b ?? null), $s: v => v === true ? 'True' : v === false ? 'False' : v == null ? '' : typeof v === 'object' && v.ToString ? v.ToString() : String(v),
  $utf8: s => Uint8Array.from(Buffer.from(s)), $out: f => f, $slice: (s, a, b) => s.slice(a, b), $repeat: (c, n) => Array.isArray(c) ? c.join('') : c.repeat(n),
  $arr: (t, n) => t === 'byte' ? (typeof n === 'number' ? new Uint8Array(n) : Uint8Array.from(n)) : (typeof n === 'number' ? new Array(n).fill(null) : n),
  $cast: (t, v) => typeof v === 'string' ? v.charCodeAt(0) : t === 'char' ? String.fromCharCode(v) : t === 'byte' ? v & 255 : Math.trunc(v),
  $string: { IsNullOrEmpty: s => !s, IsNullOrWhiteSpace: s => !s || !s.trim(), Join: (x, a) => [...a].join(x), Equals: (a, b, o) => ci(o) ? a?.toLowerCase() === b?.toLowerCase() : a === b, Empty: '', Concat: (...a) => a.flat().join('') },
  $int: { MaxValue: 2147483647, TryParse: (s, ...r) => { const hex = r.length > 1, out = r.at(-1), ok = (hex ? /^[0-9a-fA-F]+$/ : /^\s*[+-]?\d+\s*$/).test(s); out(ok ? parseInt(s, hex ? 16 : 10) : 0); return ok } },
  Encoding: { ASCII: ascii, UTF8: utf8, Latin1: latin1 }, StringBuilder, Random, StringComparison: { Ordinal: {}, OrdinalIgnoreCase: { ignoreCase: true }, InvariantCultureIgnoreCase: { ignoreCase: true } }, StringComparer: { OrdinalIgnoreCase: { ignoreCase: true }, Ordinal: {} }, StringSplitOptions: { RemoveEmptyEntries: 1, None: 0 },
  Enumerable: { Range: (a, n) => Array.from({ length: n }, (_, i) => a + i), Repeat: (x, n) => Array(n).fill(x) },
  TimeSpan: { Zero: 0, FromMilliseconds: n => n, FromSeconds: n => n * 1000 }, Math: Object.assign(Object.create(Math), { trunc: Math.trunc, Min: Math.min, Max: Math.max }),
  DateTime: { TryParseExact: (s, ...r) => { const ok = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} \d\d:\d\d:\d\d GMT$/.test(s); r.at(-1)(null); return ok }, UtcNow: {} },
  System: { Globalization: { NumberStyles: {}, CultureInfo: {}, DateTimeStyles: {} } }, CultureInfo: {}, DateTimeStyles: {},
  Dictionary: function (o) { return dictionary(ci(o)) }, List: function () { return [] }, HashSet: function () { return [] },
  TestVerdict: en(['Pass', 'Fail', 'Warn', 'Skip', 'Error']), ConnectionState: en(['Open', 'ClosedByServer', 'TimedOut', 'Error']), TestCategory: en(['Compliance', 'Smuggling', 'MalformedInput', 'Normalization', 'Cookies', 'Injection', 'WebSockets', 'Capabilities', 'ResourceLimits']), RfcLevel: en(['Must', 'Should', 'May', 'OughtTo', 'NotApplicable']),
  StatusCodeRange: { Exact: n => [n, n], Range: (a, b) => [a, b], Range2xx: [200, 299], Range4xx: [400, 499], Range4xxOr5xx: [400, 599] },
  TestCase: record(), SequenceTestCase: record(), SequenceStep: record(), SequenceSendPart: record(), ExpectedBehavior: record()
}
export function load (source) {
  install()
  const { name, js } = new Translator(tokens(source)).cls()
  return { name, members: new Function(...Object.keys(lib), '"use strict";' + js)(...Object.values(lib)) }
}
