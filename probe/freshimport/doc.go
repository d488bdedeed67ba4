// Package freshimport makes probe plans for interpreters: which modules of the current tree a fresh one must be able to
// load before a run that died in them is started again. It also reads command lines, because the probe must use the
// interpreter, the flags and the search path that the run itself had.
//
// For Python call [Parse] (with [Shebang] for scripts) and [Command.Runtime] when a run boots; after a death call
// [Modules] with the classifier's verdict, then [Plan]. For Node.js, Ruby, PHP and the JVM a [Dialect] has the same:
// [Dialect.Parse], [Dialect.Runtime], [Dialect.Plan]. [Names] knows where their units may lie.
//
// The modules are those managed ones on the failing stack that still exist, outermost first, as the program loaded
// them, and the module that was missing, if it exists now. For a removed module that leaves the modules that imported
// it.
//
// The program's own main is never run. A module that is started as a program (python -m acme, a script, any x.__main__)
// is probed under the name that [Main] gives: a prober compiles it and makes the imports that it makes for sure, at its
// top, under its main guard and, for managed packages, in its functions, and executes nothing else of it. The packages
// around it are imported, as they are when the program starts.
//
// It refuses to call nothing a pass: without modules there is no plan. What it cannot read, such as a shell, a wrapper
// that [Unwrap] does not know, a script that starts another program (npm start, poetry run, bundle exec) or a file of
// arguments, is no command line of an interpreter; it never guesses.
//
// The package is pure. What the file system says comes in as values and functions.
package freshimport
