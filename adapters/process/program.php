// Runs in the probed php, without an opening tag. It reads the request from descriptor 3, and what is proven goes out on
// descriptor 4, marked with a nonce that no module sees.
(static function () {
    $in = fopen('php://fd/3', 'rb');
    $request = explode("\0", stream_get_contents($in));
    fclose($in);
    $out = fopen('php://fd/4', 'wb');
    $nonce = $request[0];
    $count = (int) $request[1];
    $path = array_slice($request, 2, $count);
    $names = array_slice($request, 2 + $count);
    $me = getmypid();
    $leave = static function (int $code): void {
        if (function_exists('posix_kill')) {
            posix_kill(getmypid(), 9); // at once: what the modules want to do at the end is no part of the question
        }
        exit($code);
    };
    $say = static function (string $text) use ($out, $nonce, $me): void {
        if (getmypid() !== $me) {
            exit(1); // a fork made by a module: only the first process may speak
        }
        fwrite($out, $nonce . ' ' . $text . "\n");
        fflush($out);
    };
    $known = static fn (string $n, bool $load = true): bool => class_exists($n, $load) || interface_exists($n, false) || trait_exists($n, false)
        || function_exists('enum_exists') && enum_exists($n, false);
    $find = static function (string $name) use ($path): ?string {
        if (str_starts_with($name, '/')) {
            return $name;
        }
        foreach ($path as $dir) {
            foreach (["$dir/$name", "$dir/" . strtr($name, '\\', '/') . '.php'] as $file) {
                if (is_file($file)) {
                    return $file;
                }
            }
        }
        return null;
    };
    // Where there is no Composer the program has an autoloader of its own, which does not run: its classes are looked for where
    // the plan says that it had others.
    $beside = static function (string $class) use ($path, $known): void {
        for ($stem = strtr($class, '\\', '/'); $stem !== ''; $stem = substr((string) strstr($stem, '/'), 1)) {
            foreach ($path as $dir) {
                if (is_file("$dir/$stem.php")) {
                    require_once "$dir/$stem.php";
                    if ($known($class, false)) {
                        return;
                    }
                }
            }
        }
    };
    $autoloader = static function (string $file) use ($beside): void {
        for ($dir = dirname($file); ; $dir = dirname($dir)) {
            if (is_file("$dir/vendor/autoload.php")) {
                require_once "$dir/vendor/autoload.php";
                return;
            }
            if ($dir === dirname($dir)) {
                spl_autoload_register($beside); // again is no second one
                return;
            }
        }
    };
    $run = static function (string $file): void {
        require_once $file;
    };
    // The program's own file is never run: it has to compile, the files that it is sure to require by a literal path have to
    // load, and the classes that it imports have to be found. What stands under a condition or in a try may be meant to fail.
    $check = static function (string $file) use ($known, $run, $autoloader): void {
        $tokens = token_get_all((string) file_get_contents($file), TOKEN_PARSE);
        $tokens = array_values(array_filter($tokens, static fn ($t) => !is_array($t)
            || !in_array($t[0], [T_WHITESPACE, T_COMMENT, T_DOC_COMMENT], true)));
        $unsure = []; // of each open brace, whether a condition or a try opened it
        $now = false; // whether what comes next stands under one
        $parens = 0;
        foreach ($tokens as $i => $t) {
            if (is_array($t) && in_array($t[0], [T_CURLY_OPEN, T_DOLLAR_OPEN_CURLY_BRACES], true)) {
                $unsure[] = false; // in a string
            } elseif ($t === '{') {
                $unsure[] = $now;
                $now = false;
            } elseif ($t === '}') {
                array_pop($unsure);
            }
            $parens += $t === '(' ? 1 : ($t === ')' ? -1 : 0);
            if ($t === ';' && $parens === 0) {
                $now = false;
            }
            if (!is_array($t)) {
                $now = $now || $t === '?';
                continue;
            }
            $now = $now || in_array($t[0], [T_IF, T_ELSE, T_ELSEIF, T_TRY, T_CATCH, T_SWITCH, T_WHILE, T_FOR, T_FOREACH, T_BOOLEAN_AND, T_BOOLEAN_OR, T_LOGICAL_AND, T_LOGICAL_OR], true);
            $at = $i + 1;
            if (in_array($t[0], [T_REQUIRE, T_REQUIRE_ONCE], true) && !$now && !in_array(true, $unsure, true)) {
                $at += ($tokens[$at] ?? '') === '(' ? 1 : 0;
                $here = is_array($tokens[$at] ?? '') && $tokens[$at][0] === T_DIR;
                $at += $here && ($tokens[$at + 1] ?? '') === '.' ? 2 : 0;
                $literal = $tokens[$at] ?? '';
                $after = $tokens[$at + 1] ?? '';
                if (is_array($literal) && $literal[0] === T_CONSTANT_ENCAPSED_STRING && ($after === ';' || $after === ')')) {
                    $target = stripslashes(substr($literal[1], 1, -1));
                    if ($here || str_starts_with($target, '/')) {
                        $run($here ? dirname($file) . $target : $target);
                    }
                }
            } elseif ($t[0] === T_USE && !$unsure) {
                $name = $tokens[$at] ?? '';
                if (is_array($name) && in_array($name[0], [T_STRING, T_NAME_QUALIFIED, T_NAME_FULLY_QUALIFIED], true) && ($tokens[$at + 1] ?? '') !== '{') {
                    $imported[] = ltrim($name[1], '\\');
                }
            }
        }
        $autoloader($file);
        foreach ($imported ?? [] as $name) {
            if (!$known($name)) {
                throw new Error("Class \"$name\" not found");
            }
        }
    };

    set_include_path(implode(':', array_merge($path, [get_include_path()])));
    $now = -1;
    $done = false;
    register_shutdown_function(static function () use (&$now, &$done, $say, $me): void {
        $e = error_get_last();
        if (!$done && $now >= 0 && getmypid() === $me) {
            $text = $e !== null && ($e['type'] & (E_ERROR | E_PARSE | E_COMPILE_ERROR | E_CORE_ERROR)) ? $e['message'] : 'it ended the program';
            $say("fail $now " . strtr(substr($text, 0, 4096), ['\\' => '\\\\', "\n" => '\\n']));
        }
    });
    $say('up');
    foreach ($names as $i => $name) {
        $now = $i;
        $say("load $i");
        try {
            if (str_starts_with($name, 'main:')) {
                $check(substr($name, 5));
                continue;
            }
            $file = $find($name);
            if ($file !== null) {
                $autoloader($file);
                $run($file);
            } elseif (!$known($name)) {
                throw new Error("Class \"$name\" not found");
            }
        } catch (Throwable $e) {
            fwrite(STDERR, $e . "\n");
            $done = true;
            $say("fail $i " . strtr(substr(get_class($e) . ': ' . $e->getMessage(), 0, 4096), ['\\' => '\\\\', "\n" => '\\n']));
            $leave(1);
        }
    }
    $done = true;
    $say('done');
    $leave(0);
})();
