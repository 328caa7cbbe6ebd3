package simulate_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal"
)

// rival has another process take a tree whose process stalls beyond its leases. The
// stalled one wakes up later and still believes that the tree is its own: its children
// hold leases that nothing has taken yet, and an account that is out of date. rival
// reports whether it drove the tree, and whether that ended.
func (g *grove) rival(stop <-chan struct{}) (drove, ended bool) {
	luck := rand.New(rand.NewPCG(uint64(g.seed), 41))
	select {
	case <-stop:
		return false, false
	case <-g.stalled:
	}
	time.Sleep(time.Duration(15_000+luck.IntN(24_000)) * time.Millisecond)
	in := g.boot()
	defer g.leave(in)
	run, err := g.takeUp(in)
	if err != nil {
		g.notef("%s cannot take a stalled tree: %v", in.name, firstLine(err))
		return errors.Is(err, journal.ErrEnded), errors.Is(err, journal.ErrEnded)
	}
	g.notef("%s takes the tree of a stalled process", in.name)
	g.seen("a tree taken from a stalled process")
	return true, g.drive(in, run)
}

// sameAnew compares the state in which a driver left a run with a fold of its journal.
// A command that is sent in the moment in which the driver releases its lease changes
// the parked run behind it, so any state since the run last parked will do.
func (g *grove) sameAnew(run string, state machine.State) {
	was, err := json.Marshal(state)
	if err != nil {
		g.violate("the state of run %s: %v", run, err)
		return
	}
	var m machine.Funder
	var since [][]byte
	for read, err := range drive.Events(g.t.Context(), g.store, run, 0) {
		if err != nil {
			g.violate("run %s: %v", run, err)
			return
		}
		switch d := read.Event.Data.(type) {
		case event.RunStarted:
			m = machineOf(d)
		case event.RunParked:
			since = since[:0]
		}
		if err := m.Apply(read.Event); err != nil {
			g.violate("run %s does not fold: %v", run, err)
			return
		}
		if s := m.State(); s.Phase != machine.Running {
			body, err := json.Marshal(s)
			if err != nil {
				g.violate("the state of run %s: %v", run, err)
				return
			}
			since = append(since, body)
		}
	}
	for _, body := range since {
		if bytes.Equal(body, was) {
			return
		}
	}
	g.violate("run %s was left as\n%s\nand folds to\n%s", run, was, bytes.Join(since, []byte("\n")))
}
