package holder

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// owner returns the result of Process in another process.
func owner(pid int, start string) string {
	return strings.Join([]string{machineID(), strconv.Itoa(pid), start, "random"}, "/")
}

func TestAnOwnerIsDeadOnlyWhenItsProcessCertainlyIs(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("needs /proc")
	}
	me := os.Getpid()
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		owner string
		dead  bool
	}{
		"this process":              {Process(), false},
		"a process that ended":      {owner(gone.Process.Pid, "1"), true},
		"its pid is another's now":  {owner(me, "1"), true},
		"start time was not known":  {owner(me, ""), false},
		"another machine":           {"elsewhere:boot:ns/" + strconv.Itoa(gone.Process.Pid) + "/1/random", false},
		"not a pid":                 {machineID() + "/x/1/random", false},
		"a process group":           {machineID() + "/-1/1/random", false},
		"a name somebody else gave": {"worker-7", false},
		"nobody":                    {"", false},
	} {
		if got := Gone(c.owner); got != c.dead {
			t.Errorf("%s (%s): dead %t, want %t", name, c.owner, got, c.dead)
		}
	}
}

func TestAZombieOwnerIsDead(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("needs /proc")
	}
	// The name confuses a parser that stops at the first closing parenthesis.
	script := filepath.Join(t.TempDir(), "a) Z 1 2 (b")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nread line\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(script)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	pid := cmd.Process.Pid
	name := owner(pid, startTime(pid))
	if Gone(name) {
		t.Errorf("%s is dead while it lives", name)
	}
	in.Close()
	for deadline := time.Now().Add(2 * time.Minute); !Gone(name); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a process that ended counts as alive until somebody waits for it")
		}
	}
}
