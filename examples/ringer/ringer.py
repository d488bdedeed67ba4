"""Ring Mulligan's doorbell when this program dies of an exception.

Import this before anything of your own, and call install(). It stands on four modules that are loaded by then, so it
works while your own package is half replaced. See README.md beside it.
"""
import json, os, sys, time


def ring(run, text, phase=None, code=1):
    box, ns = os.path.join(os.environ["MULLIGAN_HOME"], "doorbell"), time.time_ns()
    wall = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ns // 10**9)) + ".%09dZ" % (ns % 10**9)
    note = dict({"phase": phase} if phase else {}, schema=1, run=run, at={"wall": wall}, exit={"code": code}, text=text[-65536:])
    name, folder = "%d-%d" % (os.getpid(), ns), os.open(box, os.O_RDONLY)
    with os.fdopen(os.open(box + "/." + name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as f:
        f.write(json.dumps(note).encode())
        f.flush()
        os.fsync(f.fileno())
    os.rename(box + "/." + name, box + "/" + name)
    os.fsync(folder)


class _Said(list):
    """What the interpreter prints of an exception, kept and passed on."""

    def write(self, text):
        self.append(text)
        return sys.__stderr__.write(text)

    def flush(self):
        sys.__stderr__.flush()


def install(run=None, phase=lambda: None):
    """Ring for this run on every uncaught exception. phase says how far the program is; see README.md."""
    run = run or os.environ.pop("MY_RUN_ID", None)

    def hook(kind, error, trace):
        said, sys.stderr = sys.stderr, _Said()
        try:
            sys.__excepthook__(kind, error, trace)
            ring(run, "".join(sys.stderr), phase())
        finally:
            sys.stderr = said

    if run:
        sys.excepthook = hook
