package launch

import (
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A lock that a program in the making still has is waited for, one with a holder is not.
func TestALockThatWasReleasedIsWaitedFor(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		first, err := lockWorkspace(dir, "a.yaml")
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := lockWorkspace(dir, "b.yaml"); !errors.Is(err, ErrLoopHeld) || time.Since(began) != 0 {
			t.Errorf("beside a holder: %v after %v", err, time.Since(began))
		}
		fork, err := syscall.Dup(int(first.dir.Fd()))
		if err == nil {
			err = first.release()
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := lockWorkspace(dir, "b.yaml"); !errors.Is(err, ErrLoopHeld) || time.Since(began) > time.Second {
			t.Errorf("a holder of another state directory: %v after %v", err, time.Since(began))
		}
		time.AfterFunc(100*time.Millisecond, func() { _ = syscall.Close(fork) })
		second, err := lockWorkspace(dir, "b.yaml")
		if err != nil {
			t.Fatalf("a released lock: %v", err)
		}
		if err := second.release(); err != nil {
			t.Error(err)
		}
	})
}
