// Command pawl runs agents that loop until done.
package main

import (
	"os"

	"github.com/pawlrun/pawl/internal/cli"
)

// version is set by the linker of a release build.
var version = ""

func main() { os.Exit(cli.Main(cli.Build{Version: version})) }
