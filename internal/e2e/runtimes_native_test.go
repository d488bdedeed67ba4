package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// tool runs a compiler in a folder.
func tool(t *testing.T, dir string, env []string, args ...string) {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// TestJVM: a class that is loaded late is the new one, and lacks the method that the old code calls.
func TestJVM(t *testing.T) {
	before := []string{
		"com/acme/Agent.java", `package com.acme;

import java.nio.file.*;

public class Agent {
    static String name, mode, state = System.getenv("ACME_STATE");

    static void tell(String what) throws Exception {
        Files.write(Paths.get(state, name + what), new byte[] {'.'}, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }

    public static void main(String[] args) throws Exception {
        name = args[0];
        mode = args[1];
        tell("-starts");
        Jobs jobs = new Jobs();
        tell("-waits");
        while (!Files.exists(Paths.get(state, "update"))) {
            Thread.sleep(5);
        }
        jobs.run(mode);
        tell("-done");
    }
}
`,
		"com/acme/Jobs.java", `package com.acme;

class Jobs {
    void run(String mode) {
        if (mode.equals("lazy")) {
            Wire.sendOne();
        } else if (mode.equals("bug")) {
            throw new IllegalStateException("the answer is not 42");
        } else {
            throw new NoSuchMethodError("void org.plugin.Tool.sendOne()");
        }
    }
}
`,
		"com/acme/Wire.java", `package com.acme;

class Wire {
    static void sendOne() {}
}
`,
	}
	cast{
		needs: []string{"javac", "default-jdk-headless", "java", "default-jdk-headless"}, runtime: "jvm", modules: []string{"com.acme"},
		command: []string{"java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", "%LIVE%", "com.acme.Agent"},
		before:  before, after: next(before),
		build: func(t *testing.T, dir string) {
			tool(t, dir, nil, "javac", "-J-XX:TieredStopAtLevel=1", "com/acme/Agent.java", "com/acme/Jobs.java", "com/acme/Wire.java")
		},
		module: "com.acme.Wire", witnesses: allWitnesses,
		lookalikes: map[string]string{"bug": "answer no_update_signature", "plugin": "answer unknown_signature"},
	}.play(t)
}

// agentC waits for the update and then loads a plugin that is built against the program's own library.
const agentC = `#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void acme_core_one(void);

static char *name;

static char *in(const char *what) {
  static char path[4096];
  snprintf(path, sizeof path, "%s/%s%s", getenv("ACME_STATE"), what[0] == '-' ? name : "", what);
  return path;
}

static void tell(const char *what) {
  FILE *f = fopen(in(what), "a");
  fputc('.', f);
  fclose(f);
}

int main(int argc, char **argv) {
  name = argv[1];
  acme_core_one();
  tell("-starts");
  tell("-waits");
  while (access(in("update"), F_OK)) usleep(5000);
  if (!strcmp(argv[2], "bug")) {
    fprintf(stderr, "acme-agent: the answer is not 42\n");
    return 1;
  }
  char plugin[4096];
  snprintf(plugin, sizeof plugin, "%s/%s", getenv(!strcmp(argv[2], "lazy") ? "ACME_LIVE" : "ACME_WS"), "lib/render.so");
  if (!dlopen(plugin, RTLD_NOW)) {
    fprintf(stderr, "acme-agent: cannot load plugin: %s\n", dlerror());
    return 1;
  }
  tell("-done");
  return 0;
}
`

// TestNative: a plugin that is loaded late is the new one, and needs a symbol that the old library in memory has not.
func TestNative(t *testing.T) {
	before := []string{
		"src/agent.c", agentC,
		"src/core.c", "void acme_core_one(void) {}\n",
		"src/render.c", "void acme_core_one(void);\nvoid acme_render(void) { acme_core_one(); }\n",
	}
	cast{
		needs: []string{"gcc", "gcc libc6-dev"}, runtime: "elf", modules: []string{"acme-agent", "libacme_core"}, bindings: []string{"libacme_core.so"},
		command: []string{"%LIVE%/bin/acme-agent"}, before: before, after: next(before), build: buildNative, witnesses: allWitnesses,
		module:     "%LIVE%/lib/render.so",
		lookalikes: map[string]string{"bug": "answer no_update_signature", "workspace": "answer workspace_import"},
		plugin:     []string{"lib/render.so", "not an object at all"},
	}.play(t)
}

func buildNative(t *testing.T, dir string) {
	for _, d := range []string{"bin", "lib"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	tool(t, dir, nil, "gcc", "-shared", "-fPIC", "-o", "lib/libacme_core.so", "src/core.c")
	tool(t, dir, nil, "gcc", "-shared", "-fPIC", "-o", "lib/render.so", "src/render.c")
	tool(t, dir, nil, "gcc", "-rdynamic", "-o", "bin/acme-agent", "src/agent.c", "-Llib", "-lacme_core", "-Wl,-rpath,$ORIGIN/../lib", "-ldl")
}

// TestGo: a helper program that is started late is gone, because the update brought one of another name.
func TestGo(t *testing.T) {
	before := []string{
		"go.mod", "module acme.dev/agent\n\ngo 1.21\n",
		"main.go", `package main

import (
	"fmt"
	"os"
	"os/exec"
	"time"
)

func main() {
	name, mode, state := os.Args[1], os.Args[2], os.Getenv("ACME_STATE")
	tell := func(what string) {
		f, err := os.OpenFile(state+"/"+name+what, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			panic(err)
		}
		fmt.Fprint(f, ".")
		f.Close()
	}
	tell("-starts")
	tell("-waits")
	for {
		if _, err := os.Stat(state + "/update"); err == nil {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	helper := map[string]string{"lazy": os.Getenv("ACME_LIVE"), "workspace": os.Getenv("ACME_WS")}[mode]
	if helper == "" {
		panic("the answer is not 42")
	}
	if err := exec.Command(helper + "/libexec/acme-wire-one").Run(); err != nil {
		fmt.Fprintln(os.Stderr, "acme-agent: start helper:", err)
		os.Exit(1)
	}
	tell("-done")
}
`,
		"libexec/acme-wire-one", "#!/bin/sh\n",
	}
	cast{
		needs: []string{"go", "golang"}, runtime: "command", check: []string{"sh", "-c", `test -x "$1"`, "check"}, modules: []string{"acme.dev/agent", "acme-agent"},
		command: []string{"%LIVE%/bin/acme-agent"}, before: before, after: next(before),
		build: func(t *testing.T, dir string) {
			tool(t, dir, []string{"GOWORK=off", "GOFLAGS=-buildvcs=false", "CGO_ENABLED=0"}, "go", "build", "-o", "bin/acme-agent", ".")
			if err := os.Chmod(filepath.Join(dir, "libexec", filepath.Base(glob(t, dir, "libexec/*"))), 0o755); err != nil {
				t.Fatal(err)
			}
		},
		module: "%LIVE%/libexec/acme-wire-one", witnesses: allWitnesses,
		lookalikes: map[string]string{"bug": "answer no_update_signature", "workspace": "answer workspace_error"},
	}.play(t)
}

func glob(t *testing.T, dir, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s is %v, %v; want one file", pattern, found, err)
	}
	return found[0]
}

// TestRust: a plugin that is loaded late is the new one, and lacks the symbol that the old program looks up.
func TestRust(t *testing.T) {
	before := []string{
		"src/main.rs", `use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::io::Write;

extern "C" {
    fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(object: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlerror() -> *const c_char;
}

fn load(dir: &str) -> Result<(), String> {
    let file = CString::new(format!("{dir}/lib/libwire.so")).unwrap();
    let name = CString::new("acme_wire_one").unwrap();
    unsafe {
        let object = dlopen(file.as_ptr(), 2);
        if object.is_null() || dlsym(object, name.as_ptr()).is_null() {
            return Err(CStr::from_ptr(dlerror()).to_string_lossy().into_owned());
        }
    }
    Ok(())
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let var = |name: &str| std::env::var(name).unwrap();
    let tell = |what: &str| {
        let path = format!("{}/{}{}", var("ACME_STATE"), args[1], what);
        let mut f = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        f.write_all(b".").unwrap();
    };
    tell("-starts");
    tell("-waits");
    while !std::path::Path::new(&format!("{}/update", var("ACME_STATE"))).exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    match args[2].as_str() {
        "lazy" => load(&var("ACME_LIVE")).expect("built-in plugin must load"),
        "workspace" => load(&var("ACME_WS")).expect("plugin must load"),
        _ => panic!("the answer is not 42"),
    }
    tell("-done");
}
`,
		"src/wire.c", "void acme_wire_one(void) {}\n",
	}
	cast{
		needs: []string{"rustc", "rustc", "gcc", "gcc libc6-dev"}, runtime: "command", modules: []string{"acme", "libwire"},
		check:   []string{"sh", "-c", `! ldd -r "$1" 2>&1 | grep -e 'undefined symbol' -e 'not found'`, "check"},
		command: []string{"%LIVE%/bin/acme"}, before: before, after: next(before),
		build: func(t *testing.T, dir string) {
			for _, d := range []string{"bin", "lib"} {
				if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			tool(t, dir, nil, "rustc", "--edition", "2021", "-C", "debuginfo=0", "-o", "bin/acme", "src/main.rs")
			tool(t, dir, nil, "gcc", "-shared", "-fPIC", "-o", "lib/libwire.so", "src/wire.c")
		},
		module: "%LIVE%/lib/libwire.so", witnesses: allWitnesses,
		lookalikes: map[string]string{"bug": "answer no_update_signature", "workspace": "answer workspace_error"},
		plugin:     []string{"lib/libwire.so", "not an object at all"},
	}.play(t)
}
