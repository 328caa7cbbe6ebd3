package server

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine"
)

// calling is a run with one call, which ends when it is over or stopped.
type calling struct {
	drive.Run
	streams         bool
	parked, stopped chan struct{}
	over            <-chan time.Time
	// waits are the ends of its waits, one for each look, the last one for all later looks.
	waits []time.Time
}

func (c *calling) Park()         { close(c.parked) }
func (c *calling) Interrupt()    { close(c.stopped) }
func (c *calling) Streams() bool { return c.streams }

func (c *calling) Wakes() (at time.Time) {
	if len(c.waits) > 0 {
		at = c.waits[0]
		c.waits = c.waits[min(1, len(c.waits)-1):]
	}
	return at
}

func (c *calling) Wait(context.Context) (machine.State, error) {
	select {
	case <-c.parked:
	case <-c.stopped:
	}
	select {
	case <-c.over:
	case <-c.stopped:
	}
	return machine.State{}, nil
}

// The call of a run that parks may end by itself for some time, and for longer if it is an
// answer that arrives.
func TestCallsOfARunThatParksEndByThemselves(t *testing.T) {
	for _, tt := range []struct {
		name             string
		streams, stopped bool
		takes, want      time.Duration
	}{
		{"a short call", false, false, 3 * time.Second, 3 * time.Second},
		{"a long call", false, true, time.Hour, callsEnd},
		{"an answer", true, false, 7 * time.Second, 7 * time.Second},
		{"a long answer", true, true, time.Hour, answerEnds},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &Server{}
				ctx, end := context.WithCancel(t.Context())
				end()
				began := time.Now()
				run := &calling{streams: tt.streams, parked: make(chan struct{}), stopped: make(chan struct{}), over: time.After(tt.takes)}
				s.accompany(ctx, run)
				stopped := false
				select {
				case <-run.stopped:
					stopped = true
				default:
				}
				if took := time.Since(began); took != tt.want || stopped != tt.stopped {
					t.Errorf("left after %s, stopped: %v; want %s, %v", took, stopped, tt.want, tt.stopped)
				}
			})
		})
	}
}

// A run that begins to wait for long leaves its worker at the next look, of which there is
// one a second although nothing is committed. The second wait of a run is like the first.
func TestRunLeavesWithoutACommitWhenItWaitsForLong(t *testing.T) {
	for _, looks := range []int{1, 2, 7} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			short, long := began.Add(20*time.Second), began.Add(time.Hour)
			run := &calling{parked: make(chan struct{}), stopped: make(chan struct{})}
			for range looks - 1 {
				run.waits = append(run.waits, short)
			}
			run.waits = append(run.waits, long)
			at := (&Server{}).accompany(t.Context(), run)
			if took := time.Since(began); took != time.Duration(looks)*lookAtWait || !at.Equal(long) {
				t.Errorf("left after %s until %s; want %d looks, and %s", took, at, looks, long)
			}
		})
	}
}
