package tokens_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/internal/host/tokens"
)

func TestTheTokensOfRunningServersAreFoundByTheirAddresses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "below", "servers")
	running := func(want ...tokens.Started) {
		t.Helper()
		got, err := tokens.ReadStarted(dir)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
	keep := func(s tokens.Started) func() error {
		t.Helper()
		release, err := s.Keep(dir)
		if err != nil {
			t.Fatal(err)
		}
		return release
	}
	running()
	one, two := tokens.Started{Addr: "127.0.0.1:3001", Token: tokens.New()}, tokens.Started{Addr: "[::1]:3002", Token: tokens.New()}
	first, second := keep(one), keep(two)
	running(one, two)

	// The address of a killed server can be reused by another server.
	killed := filepath.Join(dir, "127.0.0.1:9")
	if err := os.WriteFile(killed, []byte("pawl_killed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	running(one, two)
	again := tokens.Started{Addr: one.Addr, Token: tokens.New()}
	third := keep(again)
	running(again, two)
	if _, err := os.Stat(killed); err == nil {
		t.Error("the token of a server that was killed is left behind")
	}
	if err := first(); err != nil { // its address is another's by now
		t.Error(err)
	}
	running(again, two)
	for _, release := range []func() error{second, third} {
		if err := release(); err != nil {
			t.Error(err)
		}
	}
	running()
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
