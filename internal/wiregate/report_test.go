package wiregate

import (
	"fmt"
	"testing"
)

// report counts what a gate did and prints one line at its end.
type report struct {
	name                    string
	passed, failed, skipped int
}

// run runs one scenario as a subtest. check returns why it does not apply, or "".
func (r *report) run(t *testing.T, name string, check func(t *testing.T) (skip string)) {
	t.Helper()
	skipped := false
	ok := t.Run(name, func(t *testing.T) {
		if why := check(t); why != "" && !t.Failed() {
			skipped = true
			t.Skip(why)
		}
	})
	switch {
	case skipped:
		r.skipped++
	case ok:
		r.passed++
	default:
		r.failed++
	}
}

// finish prints the gate's line. A gate that passed nothing proves nothing.
func (r *report) finish(t *testing.T) {
	t.Helper()
	fmt.Fprintf(t.Output(), "gate %s: %d passed, %d failed, %d skipped\n", r.name, r.passed, r.failed, r.skipped)
	if r.passed == 0 && r.failed == 0 {
		t.Errorf("gate %s found nothing to check", r.name)
	}
}

func (d differences) report(t *testing.T, what string) {
	t.Helper()
	for _, diff := range d {
		t.Errorf("%s: %s", what, diff)
	}
}
