package sqlite_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/sqlite"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

// slowSync is what a sync takes on a slow disk.
const slowSync = 20 * time.Millisecond

// crowd is many runs that are in a tool call at the same time.
type crowd struct {
	t     *testing.T
	store *sqlite.Store
	*engine.Engine
	size int
	// ttl is how long a lease lasts.
	ttl time.Duration
	// syncs counts what the disk was asked for.
	syncs atomic.Int64
	// arrived counts the runs in the tool down, over lets them go.
	arrived sync.WaitGroup
	over    chan struct{}
}

func newCrowd(t *testing.T, size int, ttl time.Duration) *crowd {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.db")
	c := &crowd{t: t, size: size, ttl: ttl, over: make(chan struct{})}
	tap := &sqlite.Tap{
		Dir:  filepath.Dir(path),
		Sync: func(string) error { c.syncs.Add(1); time.Sleep(slowSync); return nil },
	}
	t.Cleanup(tap.Install())
	c.store = open(t, path)
	c.Engine = engine.New(c.store, func(string) (machine.Machine, error) { return agent.New(), nil }, engine.Options{LeaseTTL: ttl})
	c.arrived.Add(size)
	return c
}

// start starts one run: a call, one in which all meet, another, and an answer.
func (c *crowd) start() (*engine.Run, error) {
	call := func(name string) scripted.Turn {
		return scripted.Turn{ToolCalls: []scripted.Call{{Name: name, Arguments: json.RawMessage("{}")}}}
	}
	set, err := tool.NewSet(
		tool.New("work", "Works.", func(context.Context, struct{}) (string, error) { return "worked", nil }),
		tool.New("meet", "Waits for all.", func(ctx context.Context, _ struct{}) (string, error) {
			c.arrived.Done()
			select {
			case <-c.over:
			case <-ctx.Done():
			}
			return "met", ctx.Err()
		}),
	)
	if err != nil {
		return nil, err
	}
	cfg := agent.Config{Targets: []agent.Target{{Model: "test/model", Price: &llm.Price{}}}, Tools: set.Defs()}
	cfg.Policy.Declared = true
	started, err := agent.Start(cfg.WithDefaults(), llm.UserText("go"))
	if err != nil {
		return nil, err
	}
	model := scripted.New("test", call("work"), call("meet"), call("work"), scripted.Turn{Text: "done"})
	return c.Start(c.t.Context(), started, perform.Env{
		Tools: set, Model: func(string) (llm.Model, string, error) { return model, "model", nil },
	})
}

// meet starts all runs and waits until each is in the tool. Those that are let go
// have ended when the group is done.
func (c *crowd) meet() *sync.WaitGroup {
	var runs sync.WaitGroup
	for range c.size {
		runs.Go(func() {
			run, err := c.start()
			if err != nil {
				c.t.Error(err)
				c.arrived.Done()
				return
			}
			if s, err := run.Wait(c.t.Context()); err != nil || !s.Outcome.OK || s.Outcome.Cycles != 4 {
				c.t.Errorf("run %s: %+v, %v", run.ID, s.Outcome, err)
			}
		})
	}
	c.arrived.Wait()
	return &runs
}

// held is what is in use on the heap and by goroutines, in bytes.
func held() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// keepsLeases looks at the leases of all runs until each must have been renewed
// twice.
func (c *crowd) keepsLeases() {
	c.t.Helper()
	for began := time.Now(); time.Since(began) < c.ttl+c.ttl/3; <-time.After(100 * time.Millisecond) {
		rows, err := c.store.Runs(c.t.Context(), journal.Filter{})
		if err != nil || len(rows) != c.size {
			c.t.Fatalf("%d runs, %v", len(rows), err)
		}
		for _, r := range rows {
			if left := time.Until(r.Expiry); left <= 0 || r.State != journal.Running {
				c.t.Fatalf("run %s is %s, and its lease ended %s ago", r.ID, r.State, -left)
			}
		}
	}
}

// On a disk with instant syncs no commit waits, so none is shared.
func TestRunsThatGoAtOnceShareTheirCommits(t *testing.T) {
	const size = 64
	c := newCrowd(t, size, time.Minute)
	runs := c.meet()
	synced := c.syncs.Load()
	close(c.over)
	runs.Wait()
	// Each has four commits left.
	if synced = c.syncs.Load() - synced; synced > size {
		t.Errorf("the disk was asked for %d syncs by %d runs that were let go", synced, size)
	}
	t.Logf("%d syncs for %d appends", synced, 4*size)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestOfAThousandRunsOnASlowDiskNoneStarvesOrLosesItsLease(t *testing.T) {
	if os.Getenv("PAWL_LONG") == "" {
		t.Skip("takes PAWL_LONG=1, and a machine that has time for it")
	}
	// The leases are short, so that each must be renewed while it is looked at, and
	// long enough for a machine that does something else for some seconds.
	const size, ttl = 1000, 15 * time.Second
	c := newCrowd(t, size, ttl)
	bytes, goroutines := held(), runtime.NumGoroutine()
	runs := c.meet()
	bytes, goroutines = held()-bytes, runtime.NumGoroutine()-goroutines
	if each := bytes / uint64(size); each > 100<<10 {
		t.Errorf("a run in a tool holds %d bytes", each)
	}
	if each := float64(goroutines) / float64(size); each > 5 {
		t.Errorf("a run in a tool has %.1f goroutines", each)
	}
	c.keepsLeases()
	close(c.over)
	began, synced := time.Now(), c.syncs.Load()
	runs.Wait()
	// Each has four commits left, shared by as many as wait. How long that takes
	// depends on what else the machine does.
	synced = c.syncs.Load() - synced
	if synced > size {
		t.Errorf("the disk was asked for %d syncs by %d runs that were let go", synced, size)
	}
	t.Logf("a run in a tool: %d bytes, %.1f goroutines; all ended after %s and %d syncs",
		bytes/uint64(size), float64(goroutines)/float64(size), time.Since(began), synced)
	rows, err := c.store.Runs(t.Context(), journal.Filter{States: []journal.State{journal.Ended}})
	if err != nil || len(rows) != size {
		t.Fatalf("%d runs have ended, %v", len(rows), err)
	}
	for _, r := range rows {
		if v, err := journal.Verify(t.Context(), c.store, r.ID, r.Head); err != nil || v.HeadSeq != r.Seq {
			t.Errorf("%+v, %v", v, err)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
