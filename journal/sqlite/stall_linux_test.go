package sqlite_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
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

// stallTTL is how long a lease lasts where a disk stalls.
const stallTTL = 300 * time.Millisecond

// cook is an engine on a journal, and what its one run is made of: a call that
// may run once, and an answer.
type cook struct {
	*engine.Engine
	cfg agent.Config
	env perform.Env
}

// newCook makes a cook whose tool leaves a line in the file effects.
func newCook(store journal.Store, effects string) (*cook, error) {
	set, err := tool.NewSet(tool.New("once", "Leaves a line.", func(context.Context, struct{}) (string, error) {
		f, err := os.OpenFile(effects, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return "", err
		}
		_, err = f.WriteString("ran\n")
		return "done", errors.Join(err, f.Close())
	}))
	if err != nil {
		return nil, err
	}
	model := scripted.New("test",
		scripted.Turn{ToolCalls: []scripted.Call{{Name: "once", Arguments: json.RawMessage("{}")}}}, scripted.Turn{Text: "done"})
	c := &cook{
		Engine: engine.New(store, func(string) (machine.Machine, error) { return agent.New(), nil },
			engine.Options{LeaseTTL: stallTTL, NewID: func() string { return "a" }}),
		cfg: agent.Config{Targets: []agent.Target{{Model: "test/model", Price: &llm.Price{}}}, Tools: set.Defs()},
		env: perform.Env{Tools: set, Model: func(string) (llm.Model, string, error) { return model, "model", nil }},
	}
	c.cfg.Policy.Declared = true
	return c, nil
}

func (c *cook) start(ctx context.Context) (*engine.Run, error) {
	started, err := agent.Start(c.cfg.WithDefaults(), llm.UserText("go"))
	if err != nil {
		return nil, err
	}
	return c.Start(ctx, started, c.env)
}

func (c *cook) resume(ctx context.Context) (*engine.Run, error) {
	return c.Resume(ctx, "a", func(event.RunStarted) (perform.Env, error) { return c.env, nil })
}

// unacknowledged is a store that holds back the news of a commit.
type unacknowledged struct {
	journal.Store
	hold func()
}

func (u unacknowledged) Append(ctx context.Context, b journal.Batch) (int64, error) {
	pos, err := u.Store.Append(ctx, b)
	for _, r := range b.Records {
		if r.Type == "tool.started" {
			u.hold()
		}
	}
	return pos, err
}

// driveUntilStalled drives a run whose disk stalls while it syncs the intent of
// a call, and once more before that is acknowledged. It says when it stalls,
// goes on at each line of its stdin, and says what became of the run.
func driveUntilStalled(path string) error {
	in := bufio.NewReader(os.Stdin)
	hold := func(where string) {
		fmt.Println(where)
		_, _ = in.ReadString('\n')
	}
	var syncing, synced sync.Once
	intent := false
	tap := &sqlite.Tap{
		Dir: filepath.Dir(path),
		Write: func(path string, p []byte, _ int64) error {
			intent = intent || strings.HasSuffix(path, "-wal") && bytes.Contains(p, []byte("tool.started"))
			return nil
		},
		Sync: func(string) error {
			if intent {
				syncing.Do(func() { hold("syncing") })
			}
			return nil
		},
	}
	defer tap.Install()()
	ctx := context.Background()
	s, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return err
	}
	c, err := newCook(unacknowledged{s, func() { synced.Do(func() { hold("synced") }) }}, path+".effects")
	if err != nil {
		return err
	}
	run, err := c.start(ctx)
	if err != nil {
		return err
	}
	state, err := run.Wait(ctx)
	switch {
	case errors.Is(err, journal.ErrStale), errors.Is(err, journal.ErrEnded):
		fmt.Println("lost the run")
	case err != nil:
		fmt.Println(err)
	default:
		fmt.Println(state.Outcome.Reason)
	}
	return errors.Join(c.Close(), s.Close())
}

// stalled is another process whose disk stalls.
type stalled struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startStalled(t *testing.T, path string) *stalled {
	t.Helper()
	p := &stalled{t: t, cmd: child(t, "stall", path)}
	in, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.in, p.out = in, bufio.NewReader(out)
	p.cmd.Stderr = os.Stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = p.cmd.Wait() })
	return p
}

func (p *stalled) says(want string) {
	p.t.Helper()
	if line, err := p.out.ReadString('\n'); line != want+"\n" {
		p.t.Fatalf("the other process says %q (%v), want %q", line, err, want)
	}
}

func (p *stalled) goOn() {
	p.t.Helper()
	if _, err := p.in.Write([]byte("\n")); err != nil {
		p.t.Fatal(err)
	}
}

// A disk that stalls holds the journal's lock, so no other process can take the run
// meanwhile. If the process that waits for the disk continues first, it still has the
// lease; if another process continues first, the intent is on disk, and its effect must
// not start.
func TestOneOfTwoProcessesDrivesRunOnStalledDisk(t *testing.T) {
	for name, c := range map[string]struct {
		taken bool
		says  string
		ran   int
		kind  event.ErrorType
	}{
		"nobody takes the run":      {says: "final_answer", ran: 1},
		"another one takes the run": {taken: true, says: "lost the run", kind: event.ErrorInDoubt},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "journal.db")
			other := startStalled(t, path)
			other.says("syncing")
			s, err := sqlite.Open(t.Context(), path, sqlite.Options{BusyTimeout: 20 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			here, err := newCook(s, path+".effects")
			if err != nil {
				t.Fatal(err)
			}
			expire(t, s)
			if _, err := here.resume(t.Context()); !errors.Is(err, journal.ErrLocked) {
				t.Errorf("while the disk stalls: %v, want ErrLocked", err)
			}
			other.goOn()
			other.says("synced")
			expire(t, s)
			if c.taken {
				run, err := here.resume(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if state, err := run.Wait(t.Context()); err != nil || !state.Outcome.OK {
					t.Fatalf("%+v, %v", state.Outcome, err)
				}
			}
			other.goOn()
			other.says(c.says)
			if err := other.cmd.Wait(); err != nil {
				t.Error(err)
			}
			effects, _ := os.ReadFile(path + ".effects")
			if ran := strings.Count(string(effects), "ran"); ran != c.ran {
				t.Errorf("the call ran %d times, want %d", ran, c.ran)
			}
			if results := resultsOf(t, s); len(results) != 1 || results[0].ErrorType != c.kind {
				t.Errorf("the results are %+v, want one of type %q", results, c.kind)
			}
		})
	}
}

// expire waits until the lease of the run is over.
func expire(t *testing.T, s journal.Store) {
	t.Helper()
	row, err := s.Run(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	<-time.After(time.Until(row.Expiry) + time.Millisecond)
}

// resultsOf are the results of calls in the run "a", whose journal is whole.
func resultsOf(t *testing.T, s journal.Store) []event.ToolResult {
	t.Helper()
	row, err := s.Run(t.Context(), "a")
	if err != nil || row.State != journal.Ended {
		t.Fatalf("the run is %s, %v", row.State, err)
	}
	if v, err := journal.Verify(t.Context(), s, "a", row.Head); err != nil || v.HeadSeq != row.Seq {
		t.Errorf("%+v, %v", v, err)
	}
	records, err := s.Records(t.Context(), "a", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var results []event.ToolResult
	for _, r := range records {
		e, err := event.Decode(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		if result, ok := e.Data.(event.ToolResult); ok {
			results = append(results, result)
		}
	}
	return results
}
