def _probe():
    # Runs in the probed interpreter, Python 2.7 to 3.x. It imports nothing that the interpreter has not loaded at its
    # start, so that a probe costs what the bare import costs. The request comes in on descriptor 3, and what is proven
    # goes out on descriptor 4, marked with a nonce that no module sees.
    import sys
    import posix

    fd = 4
    request = b''
    while True:
        block = posix.read(3, 65536)
        if not block:
            break
        request += block
    posix.close(3)
    fields = request.split(b'\0')
    if bytes is not str:
        fields[1:] = [f.decode(sys.getfilesystemencoding(), 'surrogateescape') for f in fields[1:]]
    nonce, count = fields[0], int(fields[1])
    path, names = fields[2:2 + count], fields[2 + count:]
    me = posix.getpid()
    try:
        posix.set_inheritable(fd, False)
    except AttributeError:
        import fcntl
        fcntl.fcntl(fd, fcntl.F_SETFD, fcntl.FD_CLOEXEC)

    def say(text):
        if posix.getpid() != me:
            posix._exit(1)  # a fork made by a module: only the first process may speak
        if not isinstance(text, bytes):
            text = text.encode('utf-8', 'backslashreplace')
        data = nonce + b' ' + text + b'\n'
        while data:
            data = data[posix.write(fd, data):]

    def fail(i, e):
        try:
            import traceback
            traceback.print_exc()
            sys.stderr.flush()
        except BaseException:
            pass
        try:
            text = type(e).__name__ + ': ' + str(e)
        except BaseException:
            text = type(e).__name__
        text = text[:4096].replace('\\', '\\\\').replace('\n', '\\n')
        say('fail %d %s' % (i, text))
        posix._exit(1)

    def need(name, wanted, package, level):
        # What an import statement does, without binding anything.
        scope = {'__name__': (package or '') + '.__main__', '__package__': package}
        if bytes is str and not level:
            level = -1  # Python 2 looks in the package first
        module = __import__(name, scope, {}, wanted, level)
        for w in wanted or ():
            if w != '*' and not hasattr(module, w):
                raise ImportError('cannot import name %r from %r' % (w, module.__name__))

    def guard(test):
        # if __name__ == '__main__'
        return type(test).__name__ == 'Compare' and getattr(test.left, 'id', '') == '__name__'

    def follow(body, package, own, inside):
        # The imports that a run is sure to make: at the top, under the main guard, and in functions those of managed
        # packages. What stands under a condition or in a try may be meant to fail.
        for node in body:
            kind = type(node).__name__
            if kind == 'Import':
                for a in node.names:
                    if not inside or a.name.split('.')[0] in own:
                        if a.name.split('.')[-1] != '__main__':
                            need(a.name, None, package, 0)
            elif kind == 'ImportFrom':
                name, level = node.module or '', node.level or 0
                if name == '__future__' or name.split('.')[-1] == '__main__':
                    continue
                if not inside or level or name.split('.')[0] in own:
                    need(name, [a.name for a in node.names if a.name != '__main__'], package, level)
            elif kind in ('FunctionDef', 'AsyncFunctionDef'):
                follow(node.body, package, own, True)
            elif kind in ('With', 'AsyncWith') or kind == 'If' and guard(node.test):
                follow(node.body, package, own, inside)

    def check(target, own):
        # A program's main is compiled and what it imports is imported; the program itself never runs.
        package = None
        if '/' in target:
            file, source = target, None
            if file.endswith('/') or _isdir(file):
                file = file.rstrip('/') + '/__main__.py'
            with open(file, 'rb') as f:
                source = f.read()
            if b'\0' in source:
                import zipimport
                source = zipimport.zipimporter(file).get_source('__main__')
        else:
            file, package, source = find(target)
        tree = compile(source, file, 'exec', 0x400, True)  # 0x400: syntax tree only
        compile(source, file, 'exec', 0, True)
        follow(tree.body, package, own, False)

    def _isdir(file):
        return posix.stat(file).st_mode & 0o170000 == 0o040000

    def find(target):
        try:
            from importlib.util import find_spec
        except ImportError:
            import pkgutil
            loader = pkgutil.find_loader(target)
            if loader is None:
                raise ImportError('No module named ' + target)
            if loader.is_package(target):
                return find(target + '.__main__')
            return loader.get_filename(target), target.rpartition('.')[0] or None, loader.get_source(target)
        spec = find_spec(target)
        if spec is None:
            raise ImportError('No module named %r' % target)
        if spec.submodule_search_locations is not None:
            return find(target + '.__main__')
        if not hasattr(spec.loader, 'get_source'):
            raise ImportError('%r has no source to check' % target)
        return spec.origin or target, spec.parent or None, spec.loader.get_source(target)

    say('up')
    if sys.path and sys.path[0] == '':
        del sys.path[0]
    sys.path[:0] = path
    own = set(n.split('.')[0] for n in names if '/' not in n and not n.startswith('main:'))
    own.update(n[5:].split('.')[0] for n in names if n.startswith('main:') and '/' not in n)
    real = False
    for i, name in enumerate(names):
        say('load %d' % i)
        try:
            if name.startswith('main:'):
                check(name[5:], own)
                real = True
            elif name.split('.')[-1] == '__main__':
                check(name, own)
                real = True
            else:
                __import__(name)
                module = sys.modules.get(name)
                if getattr(module, '__file__', None) is not None or not hasattr(module, '__path__'):
                    real = True
        except BaseException as e:
            fail(i, e)
    if not real:
        fail(len(names) - 1, ImportError('only folders without code were found: a package without its __init__ proves nothing'))
    say('done')
    posix._exit(0)  # at once: exit handlers and threads of the modules are no part of the question


_probe()
