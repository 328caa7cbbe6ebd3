package fs_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/fs"
)

// pathFunc is a workspace of a test, called the way a run calls it: through a set
// of tools, with JSON.
type pathFunc struct {
	t   testing.TB
	dir string
	set *tool.Set
	// seen is what the run knows of files, as its journal has it.
	seen map[string]string
	mu   *sync.Mutex
}

func newPlace(t testing.TB, files map[string]string) pathFunc {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "work")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return openPlace(t, dir, files)
}

func openPlace(t testing.TB, dir string, files map[string]string) pathFunc {
	t.Helper()
	ws, err := fs.Open(dir, fs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.Close() })
	set, err := tool.NewSet(ws.Tools()...)
	if err != nil {
		t.Fatal(err)
	}
	p := pathFunc{t: t, dir: dir, set: set, seen: map[string]string{}, mu: new(sync.Mutex)}
	for name, content := range files {
		p.put(name, content)
	}
	return p
}

func (p pathFunc) path(name string) string { return filepath.Join(p.dir, filepath.FromSlash(name)) }

// put writes a file behind the tools' back.
func (p pathFunc) put(name, content string) {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(p.path(name)), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(p.path(name), []byte(content), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func (p pathFunc) content(name string) string {
	p.t.Helper()
	b, err := os.ReadFile(p.path(name))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(b)
}

type args = map[string]any

func (p pathFunc) resolve(name string, a args) event.ToolCall {
	p.t.Helper()
	raw, err := json.Marshal(a)
	if err != nil {
		p.t.Fatal(err)
	}
	return p.set.Resolve("c", llm.ToolCall{Name: name, Args: raw})
}

// call resolves and runs a call.
func (p pathFunc) call(name string, a args) (tool.Result, error) {
	p.t.Helper()
	return p.callWith(p.t.Context(), name, a)
}

func (p pathFunc) callWith(ctx context.Context, name string, a args) (tool.Result, error) {
	p.t.Helper()
	c := p.resolve(name, a)
	if c.Problem != nil {
		return tool.Result{}, &tool.Error{Type: c.Problem.Type, Message: c.Problem.Message}
	}
	t, _ := p.set.Lookup(name)
	return p.run(ctx, t, tool.Call{ID: "c", Args: c.Args})
}

// run runs a call as the engine does: the result says what the run has seen.
func (p pathFunc) run(ctx context.Context, t tool.Tool, c tool.Call) (tool.Result, error) {
	c.Seen = func(path string) (string, bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		d, ok := p.seen[path]
		return d, ok
	}
	r, err := t.Run(ctx, c)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range r.Files {
		p.seen[f.Path] = f.Digest
	}
	return r, err
}

// good calls and expects the call to succeed.
func (p pathFunc) good(name string, a args) string {
	p.t.Helper()
	r, err := p.call(name, a)
	if err != nil {
		p.t.Fatalf("%s %v: %v", name, a, err)
	}
	return r.Output
}

// bad calls and expects an error of a type that says something.
func (p pathFunc) bad(name string, a args, kind event.ErrorType, says string) {
	p.t.Helper()
	r, err := p.call(name, a)
	if err == nil {
		p.t.Errorf("%s %v succeeded: %s", name, a, r.Output)
		return
	}
	got := event.ErrorTool
	if typed, ok := errors.AsType[*tool.Error](err); ok {
		got = typed.Type
	}
	if got != kind || !strings.Contains(err.Error(), says) {
		p.t.Errorf("%s %v: %s %q; want %s with %q", name, a, got, err, kind, says)
	}
}

func symlink(t testing.TB, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}
