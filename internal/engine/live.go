package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/follow"
)

// live is a run's way to those who listen: what it says while a model speaks goes
// there, with its place behind what was committed.
type live struct {
	run *identity
	now func() time.Time
	// source is nil for a run that is not driven here.
	source *follow.Source

	mu sync.Mutex
	// seq and pos are those of the last event that was committed.
	seq, pos int64
}

// deltaSource is one attempt at a model call, from which deltas come. Once it is
// closed nothing more of it is published, even when its adapter goes on.
type deltaSource struct {
	deltaRedactor *deltaRedactor
	closed        bool
	// begun says that there was a delta.
	begun bool
	// streamed counts the bytes of all its deltas, whether anybody listened.
	streamed atomic.Int64
}

// commit notes the last event that is on disk.
func (l *live) commit(seq, pos int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq, l.pos = seq, pos
}

// say hands out a delta of a model call that is under way.
func (l *live) say(v *deltaSource, cycle int, data event.Data) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if v.closed {
		return
	}
	first := !v.begun
	v.begun = true
	l.send(cycle, data, first)
}

func (l *live) send(cycle int, data event.Data, first bool) {
	e := event.Event{Run: l.run.id, Parent: l.run.parent, Time: l.now(), Cycle: cycle, Step: l.run.step, Data: data}
	l.source.Say(e, follow.Place{Seq: l.seq, Pos: l.pos, First: first})
}

// end ends a source.
func (l *live) end(v *deltaSource) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v.closed = true
	l.source.Forget()
}

// recall takes back what a source told so far. It goes on anew.
func (l *live) recall(v *deltaSource, cycle, attempt int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if v.closed {
		return
	}
	if v.begun {
		l.send(cycle, event.TextReset{Attempt: attempt}, false)
	}
	v.begun = false
}

// retract ends a source and, where it told something, says that this is void.
func (l *live) retract(v *deltaSource, cycle, attempt int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v.closed = true
	if v.begun {
		l.send(cycle, event.TextReset{Attempt: attempt}, false)
	}
}
