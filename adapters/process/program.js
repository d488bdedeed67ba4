'use strict';
// Runs in the probed node. It reads the request from descriptor 3, and what is proven goes out on descriptor 4, marked
// with a nonce that no module sees.
(() => {
  const fs = require('node:fs');
  const path = require('node:path');
  const url = require('node:url');
  const vm = require('node:vm');
  const Module = require('node:module');
  const end = process.reallyExit.bind(process);
  const write = fs.writeSync;
  const print = (text) => { try { write(2, text); } catch { /* nobody reads */ } };

  const blocks = [];
  for (const block = Buffer.alloc(65536); ;) {
    const n = fs.readSync(3, block, 0, block.length, null);
    if (!n) break;
    blocks.push(Buffer.from(block.subarray(0, n)));
  }
  fs.closeSync(3);
  const fields = Buffer.concat(blocks).toString().split('\0');
  const nonce = fields[0], count = Number(fields[1]);
  const names = fields.slice(2 + count);

  const say = (text) => {
    const data = Buffer.from(nonce + ' ' + text + '\n');
    for (let at = 0; at < data.length;) at += write(4, data, at);
  };
  const fail = (i, e) => {
    let text = 'it failed with no error';
    try { text = e instanceof Error || e?.stack ? String(e.stack ?? e) : String(e); } catch { /* a value without words */ }
    print(text + '\n');
    try { text = String(e?.message ?? e).slice(0, 4096); } catch { /* the same */ }
    say('fail ' + i + ' ' + text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n'));
    end(1);
  };

  // isModule tells which of the two module systems a file belongs to, by its name and the nearest package.json.
  const isModule = (file) => {
    const ext = path.extname(file);
    if (ext === '.mjs' || ext === '.mts') return true;
    if (ext !== '.js' && ext !== '.ts' && ext !== '') return false;
    for (let dir = path.dirname(file); ; dir = path.dirname(dir)) {
      const found = path.join(dir, 'package.json');
      if (fs.existsSync(found)) {
        const type = JSON.parse(fs.readFileSync(found, 'utf8')).type;
        return type === 'module';
      }
      if (path.dirname(dir) === dir || path.basename(dir) === 'node_modules') return false;
    }
  };
  // pack loads a package by its name, as the code beside its folder does. One that cannot be loaded as a whole, only in
  // parts, is no question: whoever asks for a part is asked for besides.
  const nothing = Symbol('nothing was loaded');
  const pack = async (folder) => {
    const at = folder.lastIndexOf('/node_modules/');
    const name = folder.slice(at + '/node_modules/'.length);
    const beside = path.join(folder.slice(0, at), 'probe.js');
    const whole = (e) => {
      if (e?.code !== 'ERR_PACKAGE_PATH_NOT_EXPORTED' || !String(e.message).startsWith('No "exports" main')) throw e;
      return nothing;
    };
    const manifest = JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8'));
    let file;
    try {
      file = Module.createRequire(beside).resolve(name);
    } catch (e) {
      if (e?.code === 'MODULE_NOT_FOUND' && !manifest.main && manifest.exports === undefined) return nothing;
      whole(e);
      const own = vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER;
      if (!own) return nothing; // this node has no way to ask in another file's name
      return new vm.Script('import(' + JSON.stringify(name) + ')', { filename: beside, importModuleDynamically: own }).runInThisContext().catch(whole);
    }
    return load(file, top);
  };
  const load = async (name, from) => {
    let file = name;
    if (path.isAbsolute(name) && name.includes('/node_modules/') && fs.statSync(name).isDirectory()) return pack(name);
    if (!path.isAbsolute(name)) file = from.resolve(name);
    if (Module.isBuiltin?.(file)) return from(file);
    if (isModule(file)) return import(url.pathToFileURL(file).href);
    try {
      return from(file);
    } catch (e) {
      if (e?.code !== 'ERR_REQUIRE_ESM' && e?.code !== 'ERR_REQUIRE_ASYNC_MODULE') throw e;
      if (path.isAbsolute(name)) return import(url.pathToFileURL(file).href);
      throw e;
    }
  };

  // sure blanks out the blocks of a source that a try or a condition guards, unless it asks whether this is the program.
  const sure = (source) => {
    const blank = (text) => text.replace(/[^\n]/g, ' ');
    // Strings, comments and expressions have braces that open nothing.
    const bare = source.replace(/\/\/.*|\/\*[^]*?\*\/|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\[^]|[^`\\])*`|(?<=[=(,:[!&|?{};]\s*)\/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\//g, blank);
    const guard = /\b(?:try|else|(?:if|while|switch|catch)\s*\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\))\s*\{/g;
    const pieces = [];
    let done = 0;
    for (let m; (m = guard.exec(bare));) {
      if (m[1] && /require\.main|import\.meta/.test(m[1])) continue;
      let at = guard.lastIndex;
      for (let open = 1; open && at < bare.length; at++) open += bare[at] === '{' ? 1 : bare[at] === '}' ? -1 : 0;
      pieces.push(source.slice(done, guard.lastIndex), blank(source.slice(guard.lastIndex, at)));
      done = at;
      guard.lastIndex = at - 1; // an else stands behind the brace
    }
    return pieces.join('') + source.slice(done);
  };
  // check is for the program's own file, which is never run: it has to compile, and what it names of its own code, by a
  // path, has to load and to have the names that are taken from it. What it takes from packages is theirs, and what stands in
  // a try or under a condition may be meant to fail.
  const check = async (file) => {
    const source = fs.readFileSync(file, 'utf8').replace(/^#!.*/, '');
    const plain = sure(source).replace(/^\s*(\/\/.*|\*.*|\/\*.*)$/gm, '');
    const from = Module.createRequire(file);
    const esm = isModule(file);
    if (esm) compile(source); else new vm.Script(Module.wrap(source), { filename: file });
    const take = async (spec, list, separator) => {
      if (!/^\.{0,2}\//.test(spec) && !spec.startsWith('file:')) return;
      const target = spec.startsWith('file:') ? url.fileURLToPath(spec) : esm ? path.resolve(path.dirname(file), spec) : spec;
      const found = await load(target, from);
      for (const item of (list ?? '').split(',')) {
        const wanted = item.split(separator)[0].trim();
        if (!item.includes('=') && /^[\w$]+$/.test(wanted) && !(wanted in Object(found))) {
          throw new SyntaxError(`The requested module '${spec}' does not provide an export named '${wanted}'`);
        }
      }
    };
    const statics = /^\s*(?:import|export)\s+(?:([\w$]+)\s*,?\s*)?(?:\*\s*(?:as\s+[\w$]+\s+)?|\{([^}]*)\}\s*)?(?:from\s*)?(['"])([^'"\n]+)\3/gm;
    for (const m of plain.matchAll(statics)) await take(m[4], m[1] && m[1] !== 'from' ? `default,${m[2] ?? ''}` : m[2], /\sas\s/);
    const dynamic = /(?:\{([^{}]*)\}\s*=\s*(?:await\s+)?)?\b(?:require|import)\s*\(\s*(['"`])([^'"`$\n]+)\2\s*\)(?!\s*\.catch\b)/g;
    for (const m of plain.matchAll(dynamic)) await take(m[3], m[1], /[:=]/);
  };
  // An ES module is compiled by a node of its own: this one has no way to do it that runs nothing.
  const compile = (source) => {
    const { spawnSync } = require('node:child_process');
    const r = spawnSync(process.execPath, ['--check', '--input-type=module', '-'], { input: source, encoding: 'utf8', env: {} });
    if (r.status !== 0) throw new SyntaxError(r.stderr || 'it does not compile');
  };

  const top = Module.createRequire(path.join(process.cwd(), 'probe.js'));
  process.on('uncaughtException', (e) => { print(String(e?.stack ?? e) + '\n'); end(1); });
  say('up');
  (async () => {
    let real = false;
    for (let i = 0; i < names.length; i++) {
      say('load ' + i);
      try {
        const got = names[i].startsWith('main:') ? await check(names[i].slice(5)) : await load(names[i], top);
        real ||= got !== nothing;
      } catch (e) {
        fail(i, e);
      }
    }
    if (!real) fail(names.length - 1, new Error('only packages that cannot be loaded as a whole were found: that proves nothing'));
    say('done');
    end(0); // at once: timers, handlers and threads of the modules are no part of the question
  })();
})();
