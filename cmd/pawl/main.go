// Command pawl runs agents that loop until done.
package main

import (
	"os"

	"github.com/pawlrun/pawl/sandbox"
)

func main() {
	shim := sandbox.Main()
	sandbox.Hide()
	shim = shim.Adopt() // after Hide, which may keep this process from knowing its own children
	surviveBrokenPipe()
	os.Exit(execute(os.Args, streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}, shim))
}
