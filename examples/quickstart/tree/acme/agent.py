"""One agent: boots, waits for another where it has to, prepares, and does its work."""
import os
import sys
import time

STATE = os.environ.get("ACME_STATE", ".")


def mark(phase):
    """Says how far the agent is; the highest mark counts."""
    with open(os.environ["MULLIGAN_PHASE_FILE"], "a") as f:
        f.write(phase + "\n")


def wait_for(name, what):
    """Waits for a file, and tells that the wait began."""
    open(os.path.join(STATE, name + "-waits-for-" + what), "w").close()
    while not os.path.exists(os.path.join(STATE, what)):
        time.sleep(0.02)


def encode(text):
    from acme.wire import Frame  # imported when it is needed, like so much in a long-lived process
    return Frame(text).data()


def work(name):
    mark("provider_running")
    with open(os.path.join(STATE, name + "-is-done"), "wb") as f:
        f.write(encode("the answer of " + name))


def scout():
    wait_for("scout", "update")
    encode("hello")  # still at its start when the update comes
    work("scout")


def herald():
    mark("waiting")
    wait_for("herald", "scout-is-done")  # longer than the update takes
    encode("hello")
    work("herald")


def scribe():
    mark("provider_running")  # its model turn has begun when the update comes
    wait_for("scribe", "update")
    encode("hello")


def porter():
    mark("preparing")
    wait_for("porter", "update")
    with open("plan.py") as f:  # the user's own script, in the agent's workspace
        exec(compile(f.read(), os.path.abspath("plan.py"), "exec"), {})


def envoy():
    mark("preparing")
    wait_for("envoy", "update")
    import provider  # what the agent's model is asked with
    provider.ask()


def warden():
    wait_for("warden", "update")
    encode("hello")
    wait_for("warden", "second-update")  # its restart is still at its start when another update comes
    from acme import notes
    notes.write("warden")


AGENTS = {f.__name__: f for f in (scout, herald, scribe, porter, envoy, warden)}

if __name__ == "__main__":
    AGENTS[sys.argv[1]]()
