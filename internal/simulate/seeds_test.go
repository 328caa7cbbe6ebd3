package simulate_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
)

var seedFlag = flag.Int("seed", 0, "play only this seed")

// rows: ALDO-63, HAR-3, HAR-5, HAR-25, HAR-29
func TestSeeds(t *testing.T) {
	first, last := 1, 300
	if os.Getenv("PAWL_LONG") != "" {
		last = 5000
	}
	if *seedFlag != 0 {
		first, last = *seedFlag, *seedFlag
	}
	happened := map[string]int{}
	for seed := first; seed <= last && !t.Failed(); seed++ {
		synctest.Test(t, func(t *testing.T) {
			for what, n := range play(t, seed) {
				happened[what] += n
			}
		})
	}
	t.Log(happened)
	for _, what := range []string{"stuck nudge", "stuck block", "compressed rolling-window threshold", "compressed summarize-older threshold", "compressed periodic-summary threshold", "budget overrun", "tool retry", "tool failure settled", "tool retry across a restart",
		"hook before_run block", "hook before_tool block", "hook before_tool rewrite", "hook before_tool ask", "hook after_tool block", "hook after_tool rewrite",
		"summary used", "summary before a nudge", "hook before_compaction block", "hook after_compaction continue", "hook after_run continue", "hook failed",
		"parked at a limit", "call after a raise of max_tool_calls",
		"sent with an approval", "sent by name", "sent at the owner's risk"} {
		if *seedFlag == 0 && happened[what] == 0 {
			t.Errorf("no seed came across %q", what)
		}
	}
}

func play(t *testing.T, seed int) map[string]int {
	w := newWorld(seed)
	s := &simulation{t: t, world: w, tools: w.toolSet()}
	w.toTheEnd(s)
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.Failed() || len(w.violations) > 0 {
		t.Error(w.report("TestSeeds", s.listing()))
	}
	return w.happened
}

// simulation is one run on its way through its processes.
type simulation struct {
	t     *testing.T
	world *world
	tools *tool.Set

	mu    sync.Mutex
	boots int
}

// incarnation is one process with its engine.
type incarnation struct {
	*process
	engine *engine.Engine
}

func (s *simulation) boot() *incarnation {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.boots++
	n, ids := s.boots, 0
	p := &process{Store: s.world.store, world: s.world, name: fmt.Sprint("process ", n), committed: s.world.committed}
	e := engine.New(p, func(string) (machine.Machine, error) { return agent.New(), nil }, engine.Options{
		Owner: p.name,
		NewID: func() string { ids++; return fmt.Sprintf("r%d%c", n, 'a'+ids) },
	})
	s.t.Cleanup(func() { _ = e.Close() })
	return &incarnation{process: p, engine: e}
}

func (s *simulation) env(in *incarnation) perform.Env {
	env := perform.Env{Model: s.world.open(in.process), Tools: s.tools, Hooks: s.world.hooks(in.process)}
	if s.world.asks {
		env.Ask = s.world.person
	}
	return env
}

const patience = 60 // tries until the world turns calm

// player is what the loop through processes needs of a simulation.
type player interface {
	boot() *incarnation
	// leave is what becomes of a process in whose place another one is booted.
	leave(*incarnation)
	// takeUp starts the run, or resumes it once it is there.
	takeUp(*incarnation) (*engine.Run, error)
	// drive watches a run while a process drives it, and says whether it ended.
	drive(*incarnation, *engine.Run) bool
	check()
}

// toTheEnd has a run driven by one process after the other until it has ended.
func (w *world) toTheEnd(p player) {
	in := p.boot()
	for tries := 0; ; tries++ {
		if tries == patience {
			w.turnCalm()
		}
		if tries > 3*patience {
			w.violate("the run does not end")
			break
		}
		if in.dead.Load() || w.draw(4) == 0 {
			p.leave(in)
			w.sound()
			in = p.boot()
		}
		r, err := p.takeUp(in)
		if errors.Is(err, journal.ErrEnded) {
			break
		}
		if err != nil {
			w.notef("%s cannot take the run up: %v", in.name, firstLine(err))
			time.Sleep(5 * time.Second)
			continue
		}
		if p.drive(in, r) {
			break
		}
	}
	time.Sleep(time.Hour) // what is deaf to its context comes to its end
	w.sound()
	p.check()
}

// sound checks the stored row of each run against the run's events, even while they are
// written.
func (w *world) sound() {
	rows, err := w.store.Runs(context.Background(), journal.Filter{})
	if err != nil {
		w.violate("the runs cannot be listed: %v", err)
	}
	for _, row := range rows {
		if w.ended[row.ID] {
			continue // nothing of it changes any more
		}
		if _, err := journal.Verify(context.Background(), w.store, row.ID, ""); err != nil {
			w.violate("%v", err)
		}
		w.ended[row.ID] = row.State == journal.Ended
	}
}

// leave lets the process go on beside the next one, if it lives.
func (s *simulation) leave(*incarnation) {}

// takeUp starts the run, or resumes it once it is there.
func (s *simulation) takeUp(in *incarnation) (*engine.Run, error) {
	run, err := s.run()
	if err != nil {
		return nil, err
	}
	if run == "" {
		started, err := agent.Start(s.world.cfg, llm.UserText("do it"))
		if err != nil {
			return nil, err
		}
		started.Fence = &event.Fence{Nonce: nonce}
		return in.engine.Start(in.inside(s.life()), started, s.env(in))
	}
	return in.engine.Resume(in.inside(s.life()), run, func(event.RunStarted) (perform.Env, error) { return s.env(in), nil })
}

// run is the id of the run, "" before it is on disk.
func (s *simulation) run() (string, error) {
	rows, err := s.world.store.Runs(s.t.Context(), journal.Filter{})
	if err != nil || len(rows) == 0 {
		return "", err
	}
	return rows[0].ID, nil
}

// life is the context of a run in a process: one in some ends it early.
func (s *simulation) life() context.Context {
	ctx, end := context.WithCancelCause(s.t.Context())
	s.t.Cleanup(func() { end(nil) })
	if s.world.bad(8) {
		cause := engine.ErrInterrupted
		if s.world.bad(6) {
			cause = context.Canceled
		}
		time.AfterFunc(time.Duration(s.world.draw(60_000))*time.Millisecond, func() { end(cause) })
	}
	return ctx
}

// drive watches a run while a process drives it, and says whether it ended.
func (s *simulation) drive(in *incarnation, r *engine.Run) bool {
	w := s.world
	stop := make(chan struct{})
	var beside sync.WaitGroup
	beside.Go(func() { s.watch(r) })
	beside.Go(func() { s.operate(in, r, stop) })
	var ended bool
	beside.Go(func() { ended = s.rival(stop) })
	state, err := r.Wait(s.t.Context())
	close(stop)
	beside.Wait()
	switch {
	case err != nil:
		w.notef("%s gives the run up: %v", in.name, firstLine(err))
		if _, ok := errors.AsType[*engine.PanicError](err); ok {
			w.violate("%s: %v", in.name, err)
		}
		in.die()
		return ended
	case state.Phase == machine.Ended:
		return true
	}
	w.notef("%s parked the run: %s", in.name, state.Parked.Reason)
	w.standing()
	s.decideAll(in, r.ID, state.Pending)
	s.raise(in, r.ID, state.Parked)
	if w.bad(4) {
		s.send(in, w.command(r.ID, state.Pending))
	}
	time.Sleep(time.Duration(w.draw(3_600_000)) * time.Millisecond)
	w.standing()
	return ended
}

// rival waits for a process to stall beyond its lease and takes its run. The
// stalled one wakes up later and still believes that the run is its own.
func (s *simulation) rival(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return false
	case <-s.world.stalled:
	}
	time.Sleep(time.Duration(16_000+s.world.draw(20_000)) * time.Millisecond)
	in := s.boot()
	r, err := s.takeUp(in)
	if err != nil {
		s.world.notef("%s cannot take a stalled run: %v", in.name, firstLine(err))
		return errors.Is(err, journal.ErrEnded)
	}
	s.world.notef("%s takes the run of a stalled process", in.name)
	return s.drive(in, r)
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// watch follows the run as a client does. What it sees must be on disk, in
// order and without gaps.
func (s *simulation) watch(r *engine.Run) {
	w := s.world
	last := int64(0)
	for e, err := range r.Events(s.t.Context(), true) {
		if err != nil {
			return
		}
		if e.Seq == 0 {
			continue
		}
		if row, err := w.store.Run(s.t.Context(), r.ID); err != nil || e.Seq > row.Seq {
			w.violate("event %d (%s) was published before it was on disk (%v)", e.Seq, e.Type(), err)
		}
		if e.Seq != last+1 {
			w.violate("a client saw event %d after %d", e.Seq, last)
		}
		last = e.Seq
	}
}

// operate sends commands while the run goes, through whatever process.
func (s *simulation) operate(in *incarnation, r *engine.Run, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(s.world.silence()):
		}
		if s.world.bad(3) {
			s.send(in, s.world.command(r.ID, nil))
		}
		if s.world.cfg.Approve == agent.ApproveWait {
			if m, err := in.engine.Inspect(s.t.Context(), r.ID); err == nil {
				s.decideAll(in, r.ID, m.State().Pending)
			}
		}
		if s.world.bad(40) {
			r.Interrupt()
		}
	}
}

// silence is how long an operator says nothing.
func (w *world) silence() time.Duration {
	if w.chatty {
		return time.Duration(1_000+w.draw(8_000)) * time.Millisecond
	}
	return time.Duration(5_000+w.draw(120_000)) * time.Millisecond
}

func (s *simulation) send(in *incarnation, c journal.Command) {
	s.world.notef("operator: %s %s", c.Kind, c.CallID)
	s.world.sent(c, in.engine.Send(s.t.Context(), c))
}

// sent checks the result of a command. A command may find its run ended, its call
// decided or its process dead, and a raise may be too small; nothing else keeps it from
// being accepted.
func (w *world) sent(c journal.Command, err error) {
	if err != nil {
		w.notef("operator: %s: %v", c.Kind, firstLine(err))
	}
	_, small := errors.AsType[*engine.RaiseError](err)
	if err != nil && !small && !errors.Is(err, journal.ErrEnded) && !errors.Is(err, engine.ErrNotPending) && !errors.Is(err, errCrashed) {
		w.violate("%s was not taken: %v", c.Kind, err)
	}
	w.standing()
}
