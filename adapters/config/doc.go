// Package config reads the YAML blocks that configure Mulligan, agent_auto_restart, restart_notice, self_restart and sessions,
// in a file of their own or inside a host's. It is the adapter between a file that people edit and the plain values that the library
// takes: [restart.Settings], a list of [witness.Root], a [bootnotice.Config] and the limits of auto-resume.
//
// Call [Load], which finds the file (an explicit one, $MULLIGAN_CONFIG, ./mulligan.yaml, else the defaults), or [Parse]
// for text that is at hand already. [Default] is what counts without any file.
//
// It refuses unknown keys in its blocks, values of a wrong type and values out of range, and a file with none of the blocks:
// nothing ever falls back to a default because it was written wrongly. Blocks of other names are their owner's, with
// one exception: a top-level key that bears the name of one of ours and is missing in the block is taken for one that
// slipped out of it.
//
// Everything that can be written, with the defaults where there are any:
//
//	agent_auto_restart:
//	  enabled: true
//	  quiescence_seconds: 30          # 0: not at all
//	  max_defer_seconds: 1800
//	  pending_resurface_seconds: 600
//	  retention_days: 30              # of what is settled; 0: for ever
//	  storm_max_per_episode: 12
//	  storm_max_per_30m: 20
//	  project: default
//	  workspaces: []                  # folders of user code
//	  probe_command: [perl, -c]       # tries a file of a root of runtime "command", which may be the program's own: it must
//	                                  # not run it; exit code 0: it loads; default: none
//	  notifiers: [terminal]           # terminal, log, {kind: inbox, dir: DIR}
//	  packs: []                       # files of failure signatures, see package classify/pack
//	  roots:                          # managed code
//	    - name: acme
//	      kind: git                   # or pypackage, folder, npm, gem, jar, image, binary; absent: see DetectKind
//	      dirs: [/srv/acme/lib]
//	      modules: [acme]             # acme and all below it
//	      bindings: [acme_core_rs]    # native libraries of the product
//	      runtime: python             # or node, ruby, php, jvm, elf, command; absent: the new code is never tried, so
//	                                  # nothing is put back
//	      third_party: false          # true: a missing third-party module under managed code counts as well
//	    - name: tools
//	      package: acme-tools         # an installed distribution: kind pypackage; of npm, gem, jar, image and binary
//	                                  # see their packages
//	      dirs: [/srv/acme/venv/lib/python3.12/site-packages]
//	      modules: [acme_tools]
//	restart_notice:                   # how sessions are told of a restart; the block may be absent
//	  enabled: true
//	  target: primary                 # who is told when no session was concerned: primary, all or the id of a session
//	  mode: wake                      # or inject: it waits for the session's next turn
//	  grace_seconds: 600              # the session last active so long before the stop is told; 0: not at all
//	  wait_seconds: 15                # for sessions that resume lazily; 0: not at all
//	  ignored_prefixes: [head-]       # sessions that an unplanned stop tells nothing
//	  # text: Welcome back.           # in the place of the default text, word for word
//	  # dir: /srv/acme/boot           # the folder of the service's notices and restarts; absent: boot in the state folder
//	self_restart:                     # for mulligan self-restart; the block may be absent
//	  unit: acme.service              # absent: the unit that the command runs in
//	  manager: system                 # or user; absent: that of the command's own unit
//	  canary:                         # how new code is tried beside the living service
//	    always: false                 # true: before every restart, not only with --canary
//	    command: [/srv/acme/bin/acme, serve]  # absent: the unit's ExecStart
//	    preflight: [/srv/acme/bin/acme, check] # has to succeed first; absent: none
//	    path: /healthz                # answers 200 when it is alive
//	    port: 0                       # on 127.0.0.1; 0: a free one
//	    port_variable: PORT           # tells it the port; {port} in command and preflight does, too
//	    live: [/srv/acme/data]        # what it must not reach
//	    state: {ACME_DATA: ""}        # folders of its own, by variable; MULLIGAN_HOME always is one
//	sessions:
//	  driver: sqlite                  # sqlite, log or postgres
//	  dsn: /srv/acme/sessions.db      # a file, or postgres://user@host/database; absent: in the state folder
//	  auto_resume: true
//	  auto_resume_window: 1h
//	  attempts: 3
//	  per_boot: 50
//
// What is promised: an absent key has its documented default and an explicit zero is kept apart from it
// (quiescence_seconds: 0 means none); folders are absolute, relative ones counted from the file, with symlinks
// resolved, because ownership is decided on resolved paths. A tilde or a variable in a path is not expanded.
//
// Failure shows as an [*Error] with every problem of the file at once, each with its line and the values allowed.
package config
