package fs_test

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/fs"
)

// A link that appears between the decision and the call makes it another call:
// it is refused, and what is protected stays as it is.
func TestLinkThatAppearsAfterTheDecisionIsNotFollowed(t *testing.T) {
	p := newPlace(t, nil)
	if err := os.Mkdir(p.path(".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	args := json.RawMessage(`{"path":"a/config","content":"x"}`)
	judged := p.set.Resolve("c", llm.ToolCall{Name: "fs.write", Args: args})
	if judged.Facts == nil || judged.Facts.Paths[0].Path != "a/config" {
		t.Fatalf("judged by %+v", judged.Facts)
	}
	if err := os.Symlink(".git", p.path("a")); err != nil {
		t.Fatal(err)
	}
	write, _ := p.set.Lookup("fs.write")
	_, err := write.Run(t.Context(), tool.Call{Args: args, Facts: judged.Facts})
	if failed, ok := errors.AsType[*tool.Error](err); !ok || failed.Type != event.ErrorConflict {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(p.path(".git/config")); err == nil {
		t.Error("the protected file was written")
	}
	if _, err := write.Run(t.Context(), tool.Call{Args: args, Facts: p.set.Resolve("c", llm.ToolCall{Name: "fs.write", Args: args}).Facts}); err != nil {
		t.Errorf("what was judged as it is now: %v", err)
	}
}

// The target of a path that is longer than the system accepts is unknown, and yet a
// tool that resolves it step by step would get there: it is outside, and refused.
func TestALinkAtTheEndOfAPathThatIsTooLongLeadsNowhere(t *testing.T) {
	p := newPlace(t, map[string]string{".git/HEAD": "x"})
	root, err := os.OpenRoot(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	const deep = 22
	far := strings.Repeat(strings.Repeat("d", 200)+"/", deep)
	if err := errors.Join(root.MkdirAll(far, 0o755), root.Symlink(strings.Repeat("../", deep)+".git", far+"link")); err != nil {
		t.Fatal(err)
	}
	for name, a := range everyTool(far + "link/config") {
		call := p.resolve(name, a)
		if paths := call.Facts.Paths; !paths[0].Outside {
			t.Errorf("%s is judged by a path inside the workspace", name)
		}
		found, _ := p.set.Lookup(name)
		_, err := found.Run(t.Context(), tool.Call{Args: call.Args, Facts: call.Facts})
		if failed, ok := errors.AsType[*tool.Error](err); !ok || failed.Type != event.ErrorInvalidArgs || !strings.Contains(err.Error(), "longer than a path may be") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(p.path(".git/config")); err == nil {
		t.Error("the protected file was written")
	}
}

// A file that is read by one name may have a protected one besides.
func TestTheOtherNamesOfWhatIsReadAreJudged(t *testing.T) {
	ws, err := fs.Open(t.TempDir(), fs.Options{OtherNames: func(tool, path string, write bool) ([]string, error) {
		switch {
		case tool == "fs.list":
			return nil, nil
		case path == "lost":
			return nil, errors.New("too many files")
		}
		return []string{".git/config"}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	set, err := tool.NewSet(ws.Tools()...)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		tool, args string
		names      []string
		unclear    bool
	}{
		{tool: "fs.read", args: `{"path":"a"}`, names: []string{"a", ".git/config"}},
		{tool: "fs.grep", args: `{"path":"a","pattern":"x"}`, names: []string{"a", ".git/config"}},
		{tool: "fs.list", args: `{"path":"a"}`, names: []string{"a"}},
		{tool: "fs.write", args: `{"path":"a","content":"x"}`, names: []string{"a"}},
		{tool: "fs.read", args: `{"path":"/etc/passwd"}`, names: []string{"/etc/passwd"}},
		{tool: "fs.read", args: `{"path":"lost"}`, names: []string{"lost"}, unclear: true},
	} {
		facts := set.Resolve("c", llm.ToolCall{Name: tt.tool, Args: json.RawMessage(tt.args)}).Facts
		var names []string
		for _, p := range facts.Paths {
			names = append(names, p.Path)
		}
		if !slices.Equal(names, tt.names) || (len(facts.Unclear) > 0) != tt.unclear {
			t.Errorf("%s of %s is judged by %q, unclear %q", tt.tool, tt.args, names, facts.Unclear)
		}
	}
}

func TestACallInAWorkspaceThatIsGoneIsAProblemBeforeItIsJudged(t *testing.T) {
	p := newPlace(t, nil)
	call := llm.ToolCall{Name: "fs.write", Args: json.RawMessage(`{"path":"a","content":"x"}`)}
	if problem := p.set.Resolve("c", call).Problem; problem != nil {
		t.Fatalf("while it is there: %+v", problem)
	}
	if err := os.Remove(p.dir); err != nil {
		t.Fatal(err)
	}
	if problem := p.set.Resolve("c", call).Problem; problem == nil || problem.Type != event.ErrorWorkspace {
		t.Errorf("when it is gone: %+v", problem)
	}
}

// A pattern may begin with directories of its own, which lead to another place
// than the path: what is searched is what policy judges.
func TestASearchByPatternIsJudgedByWhereItLooks(t *testing.T) {
	p := newPlace(t, map[string]string{"open/a": "", "shut/b": ""})
	symlink(t, "../shut", p.path("open/link"))
	for _, tt := range []struct {
		args  args
		names []string
	}{
		{args{"pattern": "*", "path": "open"}, []string{"open"}},
		{args{"pattern": "../shut/*", "path": "open"}, []string{"shut"}},
		{args{"pattern": "shut/*"}, []string{"shut"}},
		{args{"pattern": p.path("shut/*"), "path": "open"}, []string{"shut"}},
		{args{"pattern": "link/*", "path": "open"}, []string{"shut", "open/link"}},
	} {
		raw, err := json.Marshal(tt.args)
		if err != nil {
			t.Fatal(err)
		}
		call := p.set.Resolve("c", llm.ToolCall{Name: "fs.glob", Args: raw})
		var names []string
		for _, used := range call.Facts.Paths {
			names = append(names, used.Path)
		}
		if !slices.Equal(names, tt.names) {
			t.Errorf("%s is judged by %q, want %q", raw, names, tt.names)
		}
		if key := "file:" + p.path(names[0]); len(call.Access) != 1 || call.Access[0].Key != key {
			t.Errorf("%s has the keys %v, want %s", raw, call.Access, key)
		}
	}
}
