// Package cli is the command line of Pawl: its commands, flags, exit codes and
// what they print.
package cli

import (
	"os"

	"github.com/pawlrun/pawl/internal/host/sandbox"
)

// Main runs the command line of this process and returns its exit code. A program must call Main first: the process may be a helper of a sandbox, in
// which case Main does not return.
func Main(b Build) int {
	shim := sandbox.Main()
	sandbox.Hide()
	shim = shim.Adopt() // after Hide, which may prevent this process from recognizing its own children
	surviveBrokenPipe()
	return execute(os.Args, streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}, shim, b)
}
