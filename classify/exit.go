package classify

import (
	"strings"

	"github.com/mulligan-dev/mulligan/classify/text"
)

// exitVerdict judges a death whose exit status alone says that something outside ended the process. A failure that the
// text shows was survived then, whatever it is.
func exitVerdict(e Exit, log *text.Log, f *Failure) (Verdict, bool) {
	v := Verdict{Disposition: Never, Family: NoFamily}
	// An interrupt that the runtime turns into an exception of its own has a type worth showing.
	if f != nil && e.Signal == "SIGINT" {
		v.Exception = f.Type
	}
	signal := strings.ToUpper(e.Signal)
	if signal != "" && !strings.HasPrefix(signal, "SIG") {
		signal = "SIG" + signal
	}
	// Shells, containers and the timeout program report a signal as a code: 128 and its number, or 124. No program that
	// follows conventions ends with these by itself.
	if signal == "" {
		switch e.Code {
		case 124:
			signal = "TIMEOUT"
		case 137:
			signal = "SIGKILL"
		case 143:
			signal = "SIGTERM"
		case 130:
			signal = "SIGINT"
		case 129:
			signal = "SIGHUP"
		default:
			return v, false
		}
	}
	switch signal {
	// Nobody but an operator, a keeper or the kernel sends these two. Which of them it was is in the last lines, if
	// anywhere.
	case "SIGKILL", "SIGTERM":
		v.Reason = whoKilled(log)
	// A keeper's watchdog aborts a process that hangs. Without its line an abort is a crash, and the text decides.
	case "SIGABRT":
		v.Reason = whoKilled(log)
		return v, v.Reason == Timeout
	case "SIGINT", "SIGHUP", "SIGQUIT", "SIGPIPE", "SIGUSR1", "SIGUSR2", "SIGSTOP", "SIGALRM":
		v.Reason = Killed
	case "SIGXCPU", "TIMEOUT":
		v.Reason = Timeout
	case "SIGXFSZ":
		v.Reason = DiskFull
	default:
		return v, false
	}
	return v, true
}

// byStatus reports an exit whose status may have come from outside, so that the last lines are read for who sent it.
func byStatus(e Exit) bool { return e.Signal != "" || e.Code > 123 }

// killerLines is how many lines from the end may say why a kill came.
const killerLines = 24

// whoKilled reads in the last lines why a kill came.
func whoKilled(log *text.Log) Reason {
	for i := len(log.Lines) - 1; i >= 0 && i >= len(log.Lines)-killerLines; i-- {
		if log.Ignored(i) {
			continue
		}
		switch r := terminalReason(log.Lines[i]); r {
		case OOM, Timeout, DiskFull:
			return r
		}
	}
	return Killed
}
