package sandbox

import "os"

// supervisorArg, as the only argument, makes [Main] the supervisor of a command.
const supervisorArg = "pawl-sandbox-supervisor"

// Shim starts this program again as a supervisor. Only [Main] returns a usable one: a
// program that did not call it would start itself instead. The zero value supports only
// the tier [None].
type Shim struct {
	exe *os.File
	// adopts reports that [Shim.Adopt] was called.
	adopts bool
}

// Main must be the first call of a program that wants a sandbox. It returns at once,
// except in a process that was started as a supervisor, where it does not return.
func Main() Shim {
	if len(os.Args) == 2 && os.Args[1] == supervisorArg {
		os.Exit(supervise())
	}
	return openShim()
}
