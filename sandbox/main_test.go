package sandbox_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/pawlrun/pawl/sandbox"
)

var (
	shim sandbox.Shim
	// machine is what this machine can do.
	machine = sync.OnceValue(func() *sandbox.Machine { return sandbox.Detect(context.Background(), shim) })
)

func TestMain(m *testing.M) {
	shim = sandbox.Main()
	if len(os.Args) > 2 && os.Args[1] == "attack" {
		os.Exit(attack(os.Args[2], os.Args[3:]))
	}
	if len(os.Args) == 2 && os.Args[1] == "adopt" {
		if err := adopt(shim); err != nil {
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
