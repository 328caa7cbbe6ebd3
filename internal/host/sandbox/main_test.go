package sandbox_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/pawlrun/pawl/internal/host/sandbox"
)

var (
	shim sandbox.Shim
	// machine is what this machine can do.
	machine = sync.OnceValue(func() *sandbox.Machine { return sandbox.Detect(context.Background(), shim) })
)

// programs are what this binary is besides tests.
var programs = map[string]func() error{"adopt": func() error { return adopt(shim) }, "linger": linger}

func TestMain(m *testing.M) {
	shim = sandbox.Main()
	if len(os.Args) > 2 && os.Args[1] == "attack" {
		os.Exit(attack(os.Args[2], os.Args[3:]))
	}
	if len(os.Args) == 2 && programs[os.Args[1]] != nil {
		if err := programs[os.Args[1]](); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	cache, err := os.MkdirTemp("", "cache-*")
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_CACHE_HOME", cache)
	code := m.Run()
	os.RemoveAll(cache)
	gate.print()
	os.Exit(code)
}
