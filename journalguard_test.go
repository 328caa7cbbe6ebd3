package pawl_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/sqlite"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/fs"
	"github.com/pawlrun/pawl/tool/shell"
)

// place is a directory for tools and one that they do not work in, of which
// either can be reached from the other by a link.
type place struct{ work, aside string }

func newPlace(t *testing.T) place {
	t.Helper()
	root := t.TempDir()
	p := place{work: filepath.Join(root, "work"), aside: filepath.Join(root, "aside")}
	for _, dir := range []string{p.work, p.aside} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{
		"work/out": p.aside, "aside/in": p.work, "aside/round": filepath.Join(p.work, "out"),
	} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func (p place) files(t *testing.T, dir string) []tool.Tool {
	t.Helper()
	ws, err := fs.Open(dir, fs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ws.Close() })
	return ws.Tools()
}

func (p place) journal(t *testing.T, name string) journal.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(filepath.Dir(p.work), name), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func with(tools ...tool.Tool) pawl.Agent {
	return pawl.Agent{Model: says(scripted.Turn{Text: "done"}), Tools: tools}
}

// A tool that can write the journal can approve its own calls.
func TestARunDoesNotStartWhereAToolCouldWriteItsJournalUnasked(t *testing.T) {
	for name, journal := range map[string]string{
		"at the top":                "work/journal.db",
		"deeper":                    "work/data/runs/journal.db",
		"by a link into it":         "aside/in/journal.db",
		"by a link that lies in it": "work/out/journal.db",
		"by a link to such a link":  "aside/round/journal.db",
		"in another .pawl":          "work/data/.pawl/journal.db",
	} {
		for _, kind := range []string{"fs", "fs of a linked directory", "shell"} {
			t.Run(name+", "+kind, func(t *testing.T) {
				p := newPlace(t)
				var a pawl.Agent
				culprit := "fs.write"
				switch kind {
				case "fs":
					a = with(p.files(t, p.work)...)
				case "fs of a linked directory":
					a = with(p.files(t, filepath.Join(p.aside, "in"))...)
				case "shell":
					a, culprit = with(shell.New(shell.Options{Dir: p.work})), "shell.exec"
				}
				store := p.journal(t, journal)
				_, err := a.Start(t.Context(), "go", pawl.Options{Journal: store})
				wantRefused(t, err, culprit, "", filepath.Join(filepath.Dir(p.work), journal))
				if runs, err := store.Runs(t.Context(), noFilter); err != nil || len(runs) != 0 {
					t.Errorf("the journal has %d runs: %v", len(runs), err)
				}
			})
		}
	}
}

var noFilter journal.Filter

func wantRefused(t *testing.T, err error, culprit, agent, file string) {
	t.Helper()
	refused, ok := errors.AsType[*pawl.JournalError](err)
	if !ok || refused.Tool != culprit || refused.Agent != agent || refused.File != file {
		t.Fatalf("%+v, want %q of %q and %s", err, culprit, agent, file)
	}
	if !strings.Contains(err.Error(), culprit) || !strings.Contains(err.Error(), file) {
		t.Errorf("%q names neither the tool nor the file", err)
	}
}

func TestARunStartsWhereNoToolWritesItsJournalUnasked(t *testing.T) {
	asking := func(a pawl.Agent) pawl.Agent {
		a.Approvals.Tools = []string{"fs.write", "fs.edit"}
		return a
	}
	for name, c := range map[string]struct {
		journal string
		agent   func(t *testing.T, p place) pawl.Agent
	}{
		"beside the directory of the tools": {"aside/journal.db", func(t *testing.T, p place) pawl.Agent {
			return with(append(p.files(t, p.work), shell.New(shell.Options{Dir: p.work}))...)
		}},
		"above it": {"journal.db", func(t *testing.T, p place) pawl.Agent {
			return with(append(p.files(t, p.work), shell.New(shell.Options{Dir: p.work}))...)
		}},
		"in its .pawl, about which every call asks": {"work/.pawl/journal.db", func(t *testing.T, p place) pawl.Agent {
			return with(append(p.files(t, p.work), shell.New(shell.Options{Dir: p.work}))...)
		}},
		"in it, where the tools only read": {"work/journal.db", func(t *testing.T, p place) pawl.Agent {
			return with(named(p.files(t, p.work), "fs.read", "fs.grep", "fs.list", "fs.glob")...)
		}},
		"in it, where every call that writes asks": {"work/journal.db", func(t *testing.T, p place) pawl.Agent {
			return asking(with(p.files(t, p.work)...))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			run, err := c.agent(t, p).Start(t.Context(), "go", pawl.Options{Journal: p.journal(t, c.journal)})
			if err != nil {
				t.Fatal(err)
			}
			if s, err := run.Wait(); err != nil || s.Status != pawl.StatusCompleted {
				t.Errorf("%+v, %v", s, err)
			}
		})
	}
}

func named(tools []tool.Tool, names ...string) []tool.Tool {
	var out []tool.Tool
	for _, t := range tools {
		for _, name := range names {
			if t.Name == name {
				out = append(out, t)
			}
		}
	}
	return out
}

// What permits a journal in a .pawl is that calls which write there ask.
func TestACallThatWritesAJournalInADotPawlAsks(t *testing.T) {
	for _, call := range []struct{ tool, args string }{
		{"fs.write", `{"path":".pawl/journal.db","content":"x"}`},
		{"fs.write", `{"path":".pawl/journal.db-wal","content":"x"}`},
		{"fs.write", `{"path":".pawl/journal.db-shm","content":"x"}`},
		{"shell.exec", `{"command":"echo x > .pawl/journal.db"}`},
		{"shell.exec", `{"command":"cp forged .pawl/journal.db-wal"}`},
		{"shell.exec", `{"command":"mv .pawl away"}`},
	} {
		t.Run(call.tool+" "+call.args, func(t *testing.T) {
			p := newPlace(t)
			a := with(append(p.files(t, p.work), shell.New(shell.Options{Dir: p.work}))...)
			a.Approvals.Never = []string{"fs.write", "shell.exec"}
			a.Model = says(scripted.Turn{ToolCalls: calls(call.tool, call.args)}, scripted.Turn{Text: "done"})
			run, err := a.Start(t.Context(), "go", pawl.Options{Journal: p.journal(t, "work/.pawl/journal.db")})
			if err != nil {
				t.Fatal(err)
			}
			if s, err := run.Wait(); err != nil || s.Status != pawl.StatusParked || len(s.Pending) != 1 {
				t.Errorf("%+v, %v", s, err)
			}
		})
	}
}

// The journal may have come into a tool's reach since the run began.
func TestResumeIsRefusedIfToolCouldWriteJournalUnasked(t *testing.T) {
	p := newPlace(t)
	store := p.journal(t, "work/journal.db")
	ask := pawl.Tool("ask", "Ask.", func(context.Context, struct{}) (string, error) { return "asked", nil })
	a := with(ask)
	a.Approvals.Tools = []string{"ask"}
	a.Model = says(scripted.Turn{ToolCalls: calls("ask", `{}`)}, scripted.Turn{Text: "done"})
	run, err := a.Start(t.Context(), "go", pawl.Options{Journal: store})
	if err != nil {
		t.Fatal(err)
	}
	if s, err := run.Wait(); err != nil || s.Status != pawl.StatusParked {
		t.Fatalf("%+v, %v", s, err)
	}
	file := filepath.Join(p.work, "journal.db")
	wide := a
	wide.Tools = append(wide.Tools, p.files(t, p.work)...)
	_, err = wide.Resume(t.Context(), run.ID(), pawl.Options{Journal: store})
	wantRefused(t, err, "fs.write", "", file)

	if err := run.Cancel(t.Context(), "enough"); err != nil {
		t.Fatal(err)
	}
	_, err = wide.Continue(t.Context(), run.ID(), "more", pawl.Options{Journal: store})
	wantRefused(t, err, "fs.write", "", file)
}

// parking is an agent that parks at once, whose tools work in a directory.
func parking(t *testing.T, p place, dir string, approvals ...string) pawl.Agent {
	ask := pawl.Tool("ask", "Ask.", func(context.Context, struct{}) (string, error) { return "asked", nil })
	a := researcher(scripted.Turn{ToolCalls: calls("ask", `{}`)}, scripted.Turn{Text: "done"})
	a.Tools, a.Approvals.Tools = append(p.files(t, dir), ask), append(approvals, "ask")
	return a
}

func park(t *testing.T, a pawl.Agent, store journal.Store) (run string) {
	t.Helper()
	r, err := a.Start(t.Context(), "go", pawl.Options{Journal: store})
	if err != nil {
		t.Fatal(err)
	}
	if s, err := r.Wait(); err != nil || s.Status != pawl.StatusParked {
		t.Fatalf("%+v, %v", s, err)
	}
	return r.ID()
}

// A run is judged by the rules that it began with, so these say whether it asks.
func TestAResumedRunIsRefusedByTheRulesThatItBeganWith(t *testing.T) {
	for name, c := range map[string]struct {
		began, resumed []string
		culprit        string
	}{
		"which asked":           {[]string{"fs.write", "fs.edit"}, nil, ""},
		"which did not ask":     {nil, []string{"fs.write", "fs.edit"}, "fs.write"},
		"which asked of a part": {[]string{"fs.write"}, []string{"fs.write", "fs.edit"}, "fs.edit"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			store := p.journal(t, "aside/journal.db")
			run := park(t, parking(t, p, p.work, c.began...), store)
			_, err := parking(t, p, p.aside, c.resumed...).Resume(t.Context(), run, pawl.Options{Journal: store})
			if c.culprit != "" {
				wantRefused(t, err, c.culprit, "", filepath.Join(p.aside, "journal.db"))
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAChildThatGoesOnIsHeldByTheRulesThatItBeganWith(t *testing.T) {
	p := newPlace(t)
	store := p.journal(t, "aside/journal.db")
	run := park(t, writer(parking(t, p, p.work), research), store)
	again, err := writer(parking(t, p, p.aside, "fs.write", "fs.edit"), research).Resume(t.Context(), run, pawl.Options{Journal: store})
	if err != nil {
		t.Fatal(err)
	}
	s, err := again.Wait()
	if err != nil || s.Parked == nil || !strings.Contains(s.Parked.Detail, "the tool fs.write of the agent research could write the journal") {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestStartIsRefusedIfOfferedAgentCouldWriteJournalUnasked(t *testing.T) {
	p := newPlace(t)
	child := researcher()
	child.Tools = p.files(t, p.work)
	a := writer(child, research, scripted.Turn{Text: "done"})
	_, err := a.Start(t.Context(), "go", pawl.Options{Journal: p.journal(t, "work/journal.db")})
	wantRefused(t, err, "fs.write", "research", filepath.Join(p.work, "journal.db"))
}
