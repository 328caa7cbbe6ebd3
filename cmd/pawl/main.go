// Command pawl runs agents that loop until done.
package main

import (
	"os"

	"github.com/pawlrun/pawl/sandbox"
)

func main() {
	shim := sandbox.Main().Adopt()
	sandbox.Hide()
	surviveBrokenPipe()
	os.Exit(execute(os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}, shim))
}
