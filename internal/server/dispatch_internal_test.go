package server

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal/memory"
)

// calling is a run with one call, which ends when it is over or stopped.
type calling struct {
	drive.Run
	streams         bool
	parked, stopped chan struct{}
	over            <-chan time.Time
}

func (c *calling) Park()            { close(c.parked) }
func (c *calling) Interrupt()       { close(c.stopped) }
func (c *calling) Streams() bool    { return c.streams }
func (c *calling) Wakes() time.Time { return time.Time{} }

func (c *calling) Wait(context.Context) (machine.State, error) {
	<-c.parked
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
				s := &Server{store: memory.New(nil)}
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
