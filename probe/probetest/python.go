package probetest

import "strconv"

// Python writes modules for Python, 2.7 and later.
var Python = Language{Write: write(python, ".py", strconv.QuoteToASCII), PathVariable: "PYTHONPATH"}

// python are the sources; ARG is the argument as a literal.
var python = map[Behaviour]string{
	Note:     "open(ARG, 'a').write(__name__ + '\\n')\n",
	Raise:    "raise RuntimeError(ARG)\n",
	Load:     "__import__(ARG)\n",
	Exit:     "import sys\nsys.exit(0)\n",
	ExitHard: "import os\nos._exit(0)\n",
	Crash:    "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\nwhile True: pass\n",
	Loop:     tell + "tell(os.getpid())\nwhile True: time.sleep(0.01)\n",
	Child:    tell + child,
	ChildLoop: tell + child +
		"while True: time.sleep(0.01)\n",
	Fork:   "import os\npid = os.fork()\nif pid:\n    os.waitpid(pid, 0)\n    os._exit(0)\n",
	Thread: "import threading, time\nthreading.Thread(target=lambda: [time.sleep(1) for _ in iter(int, 1)]).start()\n",
	Flood:  flood4M,
	FloodFail: flood4M +
		"raise RuntimeError(ARG)\n",
	Complain: "import sys\nsys.stderr.write('Traceback (most recent call last):\\nImportError: nothing\\n')\n",
	Input:    "import sys\nassert sys.stdin.read() == '', 'stdin is not empty'\n",
	Place:    "import os\nopen(ARG, 'w').write('\\n'.join([os.getcwd()] + os.listdir('.')))\n",
	Environ:  "import os\nopen(ARG, 'w').write(''.join(k + '=' + v + '\\0' for k, v in os.environ.items()))\n",
	Chatter: "import os\nfor fd in range(1, 64):\n    for s in (b'done\\n', b'ok\\n', b'0\\n', b'healthy\\n'):\n" +
		"        try: os.write(fd, s)\n        except OSError: pass\nos._exit(0)\n",
}

const (
	// tell writes a number to ARG so that it appears whole.
	tell = "import os, time\ndef tell(n):\n    f = open(ARG + '.part', 'w'); f.write(str(n)); f.close()\n" +
		"    os.rename(ARG + '.part', ARG)\n"
	// child is a fork, because it inherits every descriptor whatever its flags.
	child = "pid = os.fork()\nif pid == 0:\n    while True: time.sleep(0.01)\ntell(pid)\n"
	// flood4M goes past the buffers of the language.
	flood4M = "import os\nfor i in range(64):\n    for fd in (1, 2): os.write(fd, b'x' * 32767 + b'\\n')\n"
)
