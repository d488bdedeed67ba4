package notify

// entry is one line of the catalogue.
type entry struct {
	code     string
	severity Severity
	title    string
	text     string
}

func (e entry) info() Info {
	return Info{Code: e.code, Title: e.title, Text: e.text, Severity: e.severity, Doc: docPage + e.code, Known: true}
}

// catalogue is every code that Mulligan writes, grouped as the design groups them. It is built on each call, so that
// nobody can alter it.
func catalogue() []entry {
	t := intents()
	t = append(t, neverList()...)
	t = append(t, textReasons()...)
	t = append(t, decisions()...)
	t = append(t, holds()...)
	return append(t, openQuestions()...)
}

// intents are what a person did; a person's will wins over everything else.
func intents() []entry {
	return []entry{
		{"killed", Low, "Killed", "The run was killed, by a person or by the system. A killed run stays ended."},
		{"dismissed", Low, "Dismissed by a person", "A person dismissed this run, so it is left as it is."},
		{"manual_relaunch", Low, "Restarted by hand", "A person restarted this run, so the healer keeps out of it."},
		{"asked", Low, "A person has been asked", "A question about this run is open, so nothing is done until it is answered."},
		{"superseded", Low, "A newer run has the name", "A newer run works under the same name already."},
	}
}

// neverList are causes that are no update's doing.
func neverList() []entry {
	return []entry{
		{"provider_error", Medium, "The model provider broke off", "The model provider answered with a problem of its own. The same start would meet it again or not, whatever the code."},
		{"rate_limit", Medium, "Rate limit reached", "The model provider refused for now because too much was asked. No update did that."},
		{"auth", High, "Sign-in refused", "A key or a sign-in was refused. A person has to renew it."},
		{"oom", Medium, "Out of memory", "The run needed more memory than it was given."},
		{"timeout", Medium, "Out of time", "The run, or something it waited for, took longer than allowed."},
		{"disk_full", High, "Disk full", "There was no space left to write to. A person has to make room."},
		{"directive_error", Medium, "A directive could not be carried out", "What the run was asked to do could not be read or carried out as written."},
		{"tool_failure", Medium, "A tool ended badly", "A tool that the run used ended badly. That is the work's affair, not the update's."},
		{"test_failure", Medium, "Tests are red", "Tests did not pass. That is a result, and starting again would not change it."},
		{"third_party_import", Medium, "A third-party package is missing", "Code that is not the host's own asked for a package that is not there."},
		{"workspace_import", Medium, "Workspace code asks for a name that is gone", "Code in the workspace or a plugin asks the managed code for a name it does not have. The workspace has to be changed."},
		{"workspace_error", Medium, "The workspace's own code broke", "The code that broke belongs to the workspace, not to the managed code."},
	}
}

// textReasons are what the text of a death alone decides.
func textReasons() []entry {
	return []entry{
		{"no_update_signature", Medium, "Nothing points at an update", "The failure text shows none of the signs that an update leaves."},
		{"unknown_signature", Medium, "Not clear whether an update did it", "The failure text can be read in more than one way, so nothing is done on it."},
		{"signature_mismatch", Medium, "A call does not fit its function", "Managed code called a function in a way that does not fit. An update may have brought this bug; starting again would meet it again."},
		{"name_error", Medium, "A name is not defined", "Managed code uses a name that it never defines. An update may have brought this bug; starting again would meet it again."},
	}
}

// decisions are the codes of the decision table and of a launch that came to nothing.
func decisions() []entry {
	return []entry{
		{"already_restarted", High, "Broke again after its one restart", "This run was itself a replacement. Its one do-over is spent, so it is shown and not tried again."},
		{"handoff", High, "A person was involved", "The run had handed over to a person or another program (a plan, a question, a gate, a pipe). Only a person can say whether to start it again."},
		{"phase_unknown", High, "Not known how far it had come", "Nothing says whether the run had begun its work, so only a person can say whether to start it again."},
		{"runner_lost", High, "Its runner went away", "Whoever ran it was killed and left no word of how it ended, so nothing can be proven about it. It is shown and left alone."},
		{"notify_post_provider", High, "Work had begun", "The run ended after its model turn had begun. Its workspace is held as it was left; a second start could do the same work twice."},
		{"not_quiet", Low, "The code is still changing", "An update is under way, or its end is too recent or cannot be told. The run is put back once the code is quiet."},
		{"no_update_witness", High, "No proof of an update", "The text looks like an update's doing, but nothing proves that the code changed under the run."},
		{"no_prober", High, "The new code cannot be tried", "Nothing can tell whether the code is healthy now: no prober is declared for it, or the run's interpreter is not known."},
		{"waiting", Low, "Still waiting", "The run waits for its one restart longer than usual. It is put back at a safe moment, or shown with its reason when that takes too long."},
		{"probe_pending", Low, "The new code has not been tried yet", "The run is put back once a trial shows that the new code loads."},
		{"probe_failed", Medium, "The new code does not load", "A trial of the new code did not load. It is tried again once the code changes."},
		{"supervised", High, "Something else restarts it", "The run's own supervisor restarts it. Two restarters never share a run."},
		{"program_missing", Medium, "Its program is not there now", "The program or its folder is missing. The run is put back once it is there again."},
		{"launch_refused", Medium, "The launcher refused it", "The launcher said no and gave no reason of its own."},
		{"on_hold", Low, "On hold", "The host keeps replacements of this project back for a time. The run is put back once the hold ends."},
		{"at_capacity", Low, "No place is free", "As many replacements as the host allows are under way. The run is put back once one of them has ended."},
		{"deferred_expired", High, "Waited too long", "The run waited for its one restart until the time for that was over. It is left to a person."},
		{"healer_absent", High, "Nobody was there in time", "The healer first saw this death when it was older than a restart may be. It is left to a person."},
		{"clock_jump", High, "The clock jumped", "The clock ran backwards between the start and the end of the run, so nothing can be proven about the time between."},
		{"launch_aborted", High, "The restart never came up", "The one restart was begun and did not come up in time. It is not begun a second time."},
		{"launch_failed", High, "The restart could not be started", "The launcher could not start the replacement. It is not tried a second time."},
		{"replacement_ok", Low, "The replacement ended well", "The run that was put back did its work and ended well."},
		{"replacement_lost", High, "The replacement went away", "The run that was put back is gone and left no word of how it ended."},
		{"relaunch", Low, "Put back", "An update broke the run before it did any work, and the new code is healthy: it is put back once, unchanged."},
		{"taken_elsewhere", Low, "Another healer has it", "Another healer works on this run."},
		{"evidence_failed", High, "The evidence could not be kept", "The evidence could not be written to disk, and without it nothing is started."},
		{"unreadable", High, "The note of a death cannot be used", "A run left word of its end, and that word or the run's own file cannot be read, so nothing is decided. The note stays until a person has seen to it."},
		{"damaged", High, "The record cannot be read", "The ledger's record of this run is damaged. The run is shown and left alone."},
	}
}

// holds are why nothing is launched at all for now.
func holds() []entry {
	return []entry{
		{"disabled", Medium, "Switched off", "The healer is switched off by its configuration. Failures are shown, nothing is started."},
		{"paused", Medium, "Paused", "The healer is paused. Failures are shown, nothing is started until it is resumed."},
		{"by_hand", Medium, "Paused by hand", "A person paused the healer. Nothing is started until it is resumed."},
		{"state_unreadable", High, "The healer's state cannot be read", "Whether the healer is paused cannot be told, so nothing is started."},
		{"storm_paused", High, "Too many restarts", "More runs were restarted than the limits allow. Nothing more is started until a person resumes; no run has lost its do-over."},
		{"storm_episode", High, "Too many restarts for one update", "One update broke more runs than the limit allows. Nothing more is started until a person resumes; no run has lost its do-over."},
		{"storm_window", High, "Too many restarts in a short time", "More runs were restarted in a short time than the limit allows. Nothing more is started until a person resumes; no run has lost its do-over."},
		{"storm_loop", High, "Restarts keep following each other", "Restarts followed each other without a break, as a slow loop does. Nothing more is started until a person resumes; no run has lost its do-over."},
		{"held_too_long", Medium, "The pause lasted too long", "By the time the healer was resumed, this death was older than a restart may be."},
		{"would_probe", Low, "Would be tried first", "A real pass would try the new code here. This replay starts nothing."},
	}
}

// openQuestions say what is open where the text could not be judged.
func openQuestions() []entry {
	return []entry{
		{"third_party_missing_in_managed_frame", Medium, "Managed code misses a third-party package", "Managed code asked for a package that is not its own. That may be an update's doing or not."},
		{"stdlib_missing_in_managed_frame", Medium, "Managed code misses a standard module", "Managed code asked for a module of the standard library that is not there."},
		{"third_party_abi_in_binding", Medium, "A binding does not fit a foreign library", "A native binding and a library that is not the host's own do not fit each other."},
		{"type_error_in_third_party_frame", Medium, "Foreign code was used wrongly", "The mismatch lies in code that is not the host's own."},
		{"instance_attribute_error", Medium, "An attribute is missing on an object", "An object lacks an attribute, and nothing ties that to an update."},
		{"managed_bug", Medium, "A bug in managed code", "The managed code broke in a way that points at no update."},
		{"bug_while_handling_skew", Medium, "Something else broke while an update's trace was handled", "The first exception looks like an update's doing, but another one ended the run."},
		{"mixed_exception_group", Medium, "Several causes that do not agree", "Several exceptions ended the run at once, and not all look like an update's doing."},
		{"disk_full_then_torn", Medium, "A file was cut short by a full disk", "A file is torn, and the disk was full. That need not be an update's doing."},
		{"schema_drift_direction_unclear", Medium, "Data and code do not agree", "Data and code are of different versions, and nothing says which of them is newer."},
		{"older_format", Medium, "The data is older than the code", "The data was written by an older version and has to be brought forward by a person."},
		{"parse_failure", Medium, "Data could not be read", "Data could not be read, and nothing says which version wrote it."},
		{"duplicate_declaration", Medium, "A name is declared twice", "The same name was declared twice, as when old and new code are loaded together."},
		{"distribution_metadata_missing", Medium, "A package's metadata is gone", "The metadata of an installed package is gone; its code may be there or not."},
		{"missing_package_file", Medium, "A file of the package is missing", "A data file that belongs to the code is not there."},
		{"cli_mismatch", Medium, "A program was called in a way it does not know", "A program refused its arguments; caller and program may be of different versions."},
		{"permission", Medium, "Not allowed to read a file", "A file of the managed code could not be read for want of permission."},
		{"stale_file_handle", Medium, "A network file went away", "A file on a network disk was replaced while it was open."},
		{"crash_signal", Medium, "Ended by a crash", "The process crashed, and its text does not say why."},
		{"killed_by_purge_or_operator", Medium, "Killed, not known by whom", "The process was killed by a purge of old code or by a person; the text fits both."},
		{"unit_config", Medium, "The service could not be set up", "The service manager could not set the process up as its unit says."},
		{"no_process", Medium, "No process came up", "The program was never started."},
		{"no_text", Medium, "No text was left", "The run left no text to judge by."},
		{"no_error_text", Medium, "The text names no cause", "The run left text, but nothing in it says why it ended."},
		{"truncated_tail", Medium, "The text is cut off", "The text ends in the middle of what would have told the cause."},
	}
}
