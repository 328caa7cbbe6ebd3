package sandbox

import "os"

// supervisorArg, as the only argument, makes [Main] the supervisor of a command.
const supervisorArg = "pawl-sandbox-supervisor"

// Shim is the right to start this program again as a supervisor. Only [Main]
// gives a usable one: a program that did not call it would start itself
// instead. The zero value has no tier but [None].
type Shim struct {
	exe *os.File
	// adopts: see [Shim.Adopt].
	adopts bool
}

// Main must be the first thing that a program does which wants a sandbox. It
// returns at once, except in a process that was started as a supervisor: there
// it does not return at all.
func Main() Shim {
	if len(os.Args) == 2 && os.Args[1] == supervisorArg {
		os.Exit(supervise())
	}
	return openShim()
}
