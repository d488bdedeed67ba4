package config

import (
	"time"

	"github.com/mulligan-dev/mulligan/notify/bootnotice"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/witness"
)

// Block is the name of the block about the healer; SessionsBlock is that about sessions, NoticeBlock that about what sessions
// are told of restarts, SelfRestartBlock that about restarts that are asked for.
const Block = "agent_auto_restart"

// DefaultProject is the project of runs that name none.
const DefaultProject = "default"

// Config is what the block says, with the defaults filled in. It is a plain value: altering it alters nothing else.
type Config struct {
	// File is where it was read from; empty for the defaults.
	File string
	// Enabled switches the healer on (enabled).
	Enabled bool
	// Quiescence is how long a tree must have been left alone (quiescence_seconds); zero is not at all.
	Quiescence time.Duration
	// MaxDefer bounds how long a death may wait (max_defer_seconds).
	MaxDefer time.Duration
	// Resurface is after how long an untold failure is shown again (pending_resurface_seconds).
	Resurface time.Duration
	// Retention is how long what is settled is kept (retention_days); zero is for ever.
	Retention time.Duration
	// StormPerEpisode and StormPer30m bound the launches (storm_max_per_episode, storm_max_per_30m).
	StormPerEpisode, StormPer30m int
	// Project is the project of runs that name none.
	Project string
	// Workspaces are folders of user code, absolute and resolved.
	Workspaces []string
	// Roots are the trees of managed code; their folders are absolute and resolved.
	Roots []witness.Root
	// ProbeCommand tries the files of roots whose runtime is "command": it is started with a file as its last argument, and
	// says with exit status 0 that the file loads.
	ProbeCommand []string
	// Notifiers are who is told. Absent in the file it is the terminal; an empty list tells nobody.
	Notifiers []Notifier
	// Packs are files of failure signatures (packs), relative ones beside the config file. They are read where they are used.
	Packs []string
	// Notice is the block restart_notice.
	Notice bootnotice.Config
	// NoticeDir is the folder of the marker, the notices and the restarts of a service (restart_notice.dir), absolute; empty
	// is the folder boot in the state folder.
	NoticeDir string
	// SelfRestart is the block self_restart.
	SelfRestart SelfRestart
	// Sessions is the block about sessions.
	Sessions Sessions
}

// Notifier chooses one adapter of package notify.
type Notifier struct {
	Kind NotifierKind
	// Dir is where an inbox lies, absolute; it need not exist yet.
	Dir string
}

// NotifierKind names an adapter of package notify.
type NotifierKind string

// The notifiers that a file can choose.
const (
	Terminal NotifierKind = "terminal" // rows on standard error
	Log      NotifierKind = "log"      // rows in the log
	Inbox    NotifierKind = "inbox"    // a folder with one file per row
)

const day = 24 * time.Hour

// Default is the config without a file.
func Default() Config {
	return Config{
		Enabled: true, Quiescence: 30 * time.Second, MaxDefer: 30 * time.Minute, Resurface: 10 * time.Minute, Retention: 30 * day,
		StormPerEpisode: 12, StormPer30m: 20, Project: DefaultProject,
		Notifiers: []Notifier{{Kind: Terminal}}, Notice: noticeDefaults(), Sessions: DefaultSessions(),
	}
}

// Settings are the bounds as the healer takes them.
func (c Config) Settings() restart.Settings {
	quiet := c.Quiescence
	if quiet == 0 {
		quiet = -1 // to the healer, zero is the default and less is none
	}
	keep := c.Retention
	if keep == 0 {
		keep = -1
	}
	return restart.Settings{
		Disabled: !c.Enabled, Quiescence: quiet, MaxDefer: c.MaxDefer, Resurface: c.Resurface, Retention: keep,
		StormPerEpisode: c.StormPerEpisode, StormPer30m: c.StormPer30m,
	}
}

// Options are what a host knows beside the file. The zero value is right for the command line.
type Options struct {
	// Kinds and Runtimes are root kinds and runtimes of the host's own, allowed in addition to ours.
	Kinds, Runtimes []string
}

func (o Options) kinds() []string {
	return append(Kinds(), o.Kinds...)
}
func (o Options) runtimes() []string { return append(Runtimes(), o.Runtimes...) }

// RuntimeCommand is the runtime of roots that a declared command tries.
const RuntimeCommand = "command"

// Runtimes are the runtimes whose code can be tried without a host of one's own.
func Runtimes() []string {
	return []string{"python", "node", "ruby", "php", "jvm", "elf", RuntimeCommand}
}
