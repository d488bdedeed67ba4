package shell

import (
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
)

// complaint is one line of a shell.
type complaint struct {
	script  string // the script, empty where the shell itself speaks of the program it was to start
	line    int
	subject string // what the complaint is about: a path or a command
	what    string // the complaint in one word of ours, see the constants
	syntax  bool
	message string
}

// The complaints that are read.
const (
	noFile      = "no file"
	noCommand   = "no command"
	torn        = "torn"
	syntax      = "syntax"
	notRunnable = "not runnable"
	busy        = "busy"
	denied      = "denied"
	unbound     = "unbound"
)

// words are the complaints by how they end, in the languages that shells speak most.
var words = []struct{ end, what string }{
	{"no such file or directory", noFile}, {"no such file", noFile}, {"aucun fichier ou dossier de ce type", noFile}, {"aucun fichier ou dossier de ce nom", noFile}, {"datei oder verzeichnis nicht gefunden", noFile}, {"no existe el fichero o el directorio", noFile}, {"no existe el archivo o el directorio", noFile},
	{"file o directory non esistente", noFile}, {"arquivo ou diretório inexistente", noFile}, {"ficheiro ou directoria inexistente", noFile}, {"нет такого файла или каталога", noFile}, {"没有那个文件或目录", noFile}, {"沒有此一檔案或目錄", noFile}, {"そのようなファイルやディレクトリはありません", noFile}, {"그런 파일이나 디렉터리가 없습니다", noFile}, {"bestand of map bestaat niet", noFile}, {"nie ma takiego pliku ani katalogu", noFile},
	{"cannot open", noFile},
	{"command not found", noCommand}, {"commande introuvable", noCommand}, {"kommando nicht gefunden", noCommand}, {"befehl nicht gefunden", noCommand}, {"orden no encontrada", noCommand}, {"no se encontró la orden", noCommand}, {"comando non trovato", noCommand}, {"comando não encontrado", noCommand}, {"команда не найдена", noCommand}, {"未找到命令", noCommand}, {"找不到指令", noCommand}, {"コマンドが見つかりません", noCommand}, {"명령어를 찾을 수 없음", noCommand}, {"opdracht niet gevonden", noCommand}, {"nie znaleziono polecenia", noCommand}, {"not found", noCommand},
	{"cannot execute binary file: exec format error", notRunnable}, {"cannot execute binary file", notRunnable}, {"exec format error", notRunnable}, {"fehler im format der programmdatei", notRunnable}, {"erreur de format pour exec()", notRunnable},
	{"text file busy", busy}, {"das programm kann nicht ausgeführt oder verändert werden (busy)", busy}, {"fichier texte occupé", busy},
	{"permission denied", denied}, {"keine berechtigung", denied}, {"permission non accordée", denied}, {"permiso denegado", denied},
	{"unbound variable", unbound}, {"parameter not set", unbound}, {"nicht gesetzt", unbound}, {"variable sans liaison", unbound},
}

// read takes a line apart; false where it is no shell's.
func read(l string) (complaint, bool) {
	var c complaint
	if len(l) > 2048 || len(l) < 8 {
		return c, false
	}
	rest, ok := c.head(l)
	if !ok {
		return c, false
	}
	c.message = rest
	low := strings.ToLower(rest)
	if c.script != "" && broken(&c, low) {
		return c, true
	}
	if body, ok := strings.CutSuffix(rest, " [No such file or directory]"); ok { // ksh says it twice
		rest, low = body, low[:len(body)]
	}
	// dash: "2: .: Can't open /path", ksh: ".: /path: cannot open"
	if _, path, ok := cutAny(rest, "can't open ", "Can't open ", "cannot open "); ok && path != "" {
		if quoted, _, ok := strings.Cut(strings.TrimPrefix(path, "'"), "': "); ok { // busybox
			path = quoted
		}
		c.subject, c.what = strings.TrimSuffix(strings.TrimSuffix(strings.Trim(path, "'\""), ": No such file"), "'"), noFile
		return c, true
	}
	for _, w := range words {
		if strings.HasPrefix(low, w.end+": ") { // zsh says the complaint first
			c.subject, c.what = rest[len(w.end)+2:], w.what
			return c, true
		}
		if !strings.HasSuffix(low, w.end) {
			continue
		}
		head := strings.TrimRight(rest[:max(0, len(rest)-len(w.end))], " :")
		head = strings.TrimSuffix(strings.TrimSuffix(head, ": cannot execute"), ": bad interpreter")
		head = strings.TrimSuffix(strings.TrimSuffix(head, ": cannot open"), ": impossible d'ouvrir")
		// ". : /path", "source: /path", "exec: tool": the builtin in front is no part of the subject.
		for _, b := range [...]string{".: ", "source: ", "exec: ", "eval: ", "failed to run command ", "failed to execute "} {
			head = strings.TrimPrefix(head, b)
		}
		head = strings.Trim(head, "`'\"‘’«» ")
		if head == "" || w.what != unbound && strings.Contains(head, ": ") {
			return c, false
		}
		c.subject, c.what = head, w.what
		return c, true
	}
	return c, false
}

// tornWords say, in lower case, that a script ended too soon, syntaxWords that it does not parse.
var (
	tornWords = [...]string{
		"unexpected end of file", "unexpected eof", "end of file unexpected", "unterminated quoted string", "unmatched", "eof in backquote", "here-document",
		"parse error near `\\n'", "fichier inattendu", "fin de fichier", "unerwartetes dateiende", "dateiende beim suchen", "unerwarteter dateiende", "unerwartetes ende",
		"eof inesperado", "final de fichero", "未预期的文件结尾", "未预期的文件结束", "予期しないファイル終了", "inatteso", "конец файла",
	}
	syntaxWords = [...]string{
		"syntax error", "parse error", "syntaxfehler", "erreur de syntaxe", "error sintáctico", "error de sintaxis", "errore di sintassi", "erro de sintaxe",
		"синтаксическая ошибка", "语法错误", "構文エラー", "구문 오류",
	}
)

// broken reads the complaints about a script that does not parse.
func broken(c *complaint, low string) bool {
	switch {
	// The end came too soon.
	case has(low, tornWords[:]...):
		if has(low, "warning:", "warnung:", "avertissement") {
			return false
		}
		c.what = torn
	case has(low, syntaxWords[:]...):
		c.what = syntax
	// bash repeats the offending line in quotes.
	case strings.HasPrefix(c.message, "`") && strings.HasSuffix(c.message, "'"):
		c.what = syntax
	default:
		return false
	}
	c.syntax = true
	return true
}

// head reads "SCRIPT: line N: ", "SCRIPT: N: ", "SCRIPT[N]: ", "SCRIPT:N: " and "bash: ", and returns the complaint.
func (c *complaint) head(l string) (string, bool) {
	for from := 0; from < len(l); {
		at := strings.Index(l[from:], ": ")
		if at < 0 {
			return "", false
		}
		at += from
		name, rest := l[:at], l[at+2:]
		if from == 0 && shells[strings.TrimPrefix(name, "-")] {
			// "bash: /path: No such file", or "bash: line 3: ..." for a script that came from standard input.
			if r, n, ok := lineNumber(rest); ok {
				c.script, c.line = "-c", n
				return r, true
			}
			if r, ok := strings.CutPrefix(rest, "0: "); ok { // dash, of its script
				rest = r
			}
			return rest, true
		}
		if plausible(name) {
			if r, n, ok := lineNumber(rest); ok {
				c.script, c.line = withoutBuiltin(name), n
				return r, true
			}
			// ksh "script[4]:", zsh "script:4:"
			if i := strings.LastIndexAny(name, "[:"); i > 0 && plausible(withoutBuiltin(name[:i])) {
				if n, ok := number(strings.TrimSuffix(name[i+1:], "]")); ok {
					c.script, c.line = withoutBuiltin(name[:i]), n
					if shells[c.script] {
						c.script = "-c"
					}
					return rest, true
				}
			}
		}
		if from > 0 || !plausible(name) {
			return "", false
		}
		from = at + 2
	}
	return "", false
}

// withoutBuiltin drops the builtin that some shells put between their script and the line: busybox "script: .: line 4", zsh
// "script:source:4".
func withoutBuiltin(script string) string {
	for _, b := range [...]string{": .", ":.", ":source", ": source"} {
		if s, ok := strings.CutSuffix(script, b); ok {
			return s
		}
	}
	return script
}

// shells are the names under which shells speak of themselves.
var shells = map[string]bool{"bash": true, "sh": true, "dash": true, "zsh": true, "ksh": true, "ash": true, "busybox": true, "/bin/sh": true, "/bin/bash": true, "/usr/bin/bash": true, "/bin/dash": true, "/usr/bin/env": true, "env": true, "exec": true, "nohup": true, "timeout": true, "nice": true, "setsid": true, "stdbuf": true, "flock": true}

// plausible reports a name that may be a script's.
func plausible(name string) bool {
	// Compilers and other interpreters print lines of the same shape about files of theirs.
	base := withoutBuiltin(strings.TrimRight(name[strings.LastIndexByte(name, '/')+1:], "[]:0123456789"))
	if at := strings.LastIndexByte(base, '.'); at > 0 && strings.Trim(base[at+1:], "0123456789") != "" && !strings.HasSuffix(base, "sh") && !strings.HasSuffix(base, ".command") {
		return false
	}
	return name != "" && (strings.HasPrefix(name, "/") || strings.HasPrefix(name, "./") || strings.HasPrefix(name, "../") || strings.HasSuffix(strings.TrimRight(name, "[]:0123456789"), "sh")) && !strings.ContainsAny(name, "\t\"'`=()")
}

// lineNumber reads "line 4: rest" in the languages of bash, and dash's "4: rest".
func lineNumber(s string) (rest string, n int, ok bool) {
	word, rest, ok := strings.Cut(s, ": ")
	if !ok || len(word) > 24 {
		// "第 4 行："
		word, rest, ok = strings.Cut(s, "：")
		if !ok || len(word) > 24 {
			return "", 0, false
		}
	}
	// Words may stand before and behind the number, and nothing but one number may be in it.
	word = strings.TrimSpace(word)
	if n, ok := number(word); ok {
		return rest, n, true
	}
	for _, w := range [...]string{"line", "ligne", "zeile", "linha", "línea", "linea", "строка", "行", "第", "줄", "regel", "linia"} {
		low := strings.ToLower(word)
		if !strings.Contains(low, w) {
			continue
		}
		left := strings.Trim(strings.NewReplacer(w, "", "第", "", "行", "").Replace(low), " .\u00a0")
		if n, ok := number(left); ok {
			return rest, n, true
		}
	}
	return "", 0, false
}

func number(s string) (int, bool) {
	if s == "" || len(s) > 7 {
		return 0, false
	}
	n := 0
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}

// cutAny splits s at the first of some words that it holds.
func cutAny(s string, words ...string) (before, after string, ok bool) {
	for _, w := range words {
		if before, after, ok = strings.Cut(s, w); ok {
			return before, after, true
		}
	}
	return "", "", false
}

func has(s string, words ...string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

// finish turns a complaint into the neutral failure; false where it proves nothing.
func finish(f *classify.Failure, c complaint) bool {
	path := strings.Contains(c.subject, "/")
	switch c.what {
	case noFile:
		f.Kind, f.Loading = classify.KindMissingModule, true
		if strings.HasPrefix(c.subject, "/") {
			f.File = c.subject // any other is relative to a folder that nothing names
		}
		// A shell that complains of a file to read or write is not missing a unit. What it was itself told to start is one.
		if !f.Startup && !unit(c.subject) {
			f.Kind, f.Code = classify.KindFile, "2"
		}
	case noCommand:
		if path {
			f.Kind, f.File = classify.KindMissingModule, c.subject
			break
		}
		f.Kind, f.Symbol = classify.KindCommand, c.subject
	case torn, syntax:
		// A running shell reads its script in pieces: after a swap it goes on at the old place in the new text. A slip of
		// the pen would have ended the script at its first start, so a broken script of the product is torn.
		f.Kind = classify.KindTorn
		if strings.HasPrefix(c.script, "/") {
			f.File = c.script
		}
	case notRunnable, busy:
		f.Kind, f.File = classify.KindTorn, c.subject
	case denied:
		f.Kind, f.File, f.Code = classify.KindFile, c.subject, "13"
	case unbound:
		f.Kind, f.Symbol = classify.KindUndefined, c.subject
	default:
		return false
	}
	return true
}

// scripts are the endings of files that shells source, folders those in which programs and scripts lie.
var (
	scripts = [...]string{".sh", ".bash", ".zsh", ".ksh", ".dash", ".bashrc", ".profile"}
	folders = [...]string{"/bin/", "/sbin/", "/libexec/", "/lib/", "/lib64/", "/scripts/", "/tools/", "/hooks/", "/plugins/", "/functions/", "/src/", "/current/", "/releases/", "/app/"}
	stored  = [...]string{"/state/", "/run/", "/cache/", "/logs/", "/log/", "/tmp/", "/var/", "/spool/", "/data/", "/queue/"}
)

// unit reports a path that is a program or a script by its ending or its folder.
func unit(path string) bool {
	if has(path, stored[:]...) {
		return false
	}
	for _, e := range scripts {
		if strings.HasSuffix(path, e) {
			return true
		}
	}
	base := path[strings.LastIndexByte(path, '/')+1:]
	if at := strings.LastIndexByte(base, '.'); at > 0 && strings.Trim(base[at+1:], "0123456789") != "" {
		return false // any other ending is that of a file of data
	}
	return has(path, folders[:]...)
}
