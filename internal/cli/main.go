// Package cli is the command line of Pawl: its commands, flags, exit codes and
// what they print.
package cli

import (
	"os"

	"github.com/pawlrun/pawl/internal/host/sandbox"
)

// Main runs the command line of this process and returns its exit code. The
// version is that of a release build; where it is empty, the build information
// of the binary names it. A program that calls Main does nothing before it: this
// process may be a helper of a sandbox, which Main does not return from.
func Main(version string) int {
	shim := sandbox.Main()
	sandbox.Hide()
	shim = shim.Adopt() // after Hide, which may keep this process from knowing its own children
	surviveBrokenPipe()
	return execute(os.Args, streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}, shim, version)
}
