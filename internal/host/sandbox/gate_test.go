package sandbox_test

import (
	"fmt"
	"sync/atomic"
	"testing"
)

// gate counts what was held against the tiers of this machine.
var gate tally

type tally struct{ passed, failed, skipped atomic.Int64 }

func (g *tally) pass(t *testing.T) {
	if t.Failed() {
		g.failed.Add(1)
		return
	}
	g.passed.Add(1)
}

func (g *tally) skip() { g.skipped.Add(1) }

func (g *tally) print() {
	if p, f, s := g.passed.Load(), g.failed.Load(), g.skipped.Load(); p+f+s > 0 {
		fmt.Printf("gate sandbox: %d passed, %d failed, %d skipped\n", p, f, s)
	}
}
