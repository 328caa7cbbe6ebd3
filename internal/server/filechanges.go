package server

import (
	"cmp"
	"context"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	textdiff "github.com/rogpeppe/go-internal/diff"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/tool/fs"
)

// The most bytes of a diff, and of a file's content that is kept to make one.
const (
	longestDiff = 64 << 10
	longestKept = 1 << 20
)

// fileWrite is a call that wrote a file, or was to write it.
type fileWrite struct {
	Run    string     `json:"run"`
	Seq    int64      `json:"seq"`
	CallID string     `json:"callId"`
	Name   string     `json:"name"`
	State  view.State `json:"state"`
	// Why is why the call did not write.
	Why string `json:"why,omitempty"`
	// Diff is the change in unified form. It is empty for a call that is no file tool's.
	Diff string `json:"diff,omitempty"`
	// Whole reports that the call replaced the whole file, whose content before it no
	// event has.
	Whole bool `json:"whole,omitempty"`
	// Cut reports that Diff is only its beginning.
	Cut bool `json:"cut,omitempty"`
}

// changedFile is a file with the calls that name it for writing.
type changedFile struct {
	Path  string      `json:"path"`
	Calls []fileWrite `json:"calls"`
}

// fileChanges are the files that a run and its descendants wrote, or were to write.
type fileChanges struct {
	Items []changedFile `json:"items"`
	// More counts the files that are left out.
	More int `json:"more,omitempty"`
}

// showChanges lists the files that the calls of a run and of the runs below it wrote.
func (s *Server) showChanges(a *apiRequest[none, none]) (fileChanges, error) {
	row, err := s.find(a.Request)
	if err != nil {
		return fileChanges{}, err
	}
	return s.changesOf(a.Context(), row.ID)
}

func (s *Server) changesOf(ctx context.Context, run string) (fileChanges, error) {
	f := changeFold{calls: map[string]int64{}, about: map[string]event.ToolCall{}, files: map[string]*changedFile{}, contents: map[string]string{}}
	for e, err := range drive.WithDescendants(ctx, s.store, run, event.TypeRunStarted, event.TypeToolCall, event.TypeToolResult) {
		if err != nil {
			return fileChanges{}, err
		}
		f.add(e)
	}
	names := slices.Sorted(maps.Keys(f.files))
	all := fileChanges{Items: []changedFile{}, More: max(len(names)-pageMost, 0)}
	for _, name := range names[:len(names)-all.More] {
		all.Items = append(all.Items, *f.files[name])
	}
	return all, nil
}

// changeFold folds the calls of a tree of runs into the files that they wrote.
type changeFold struct {
	// root is the workspace of the first run, and dir that of the current one.
	root, dir string
	about     map[string]event.ToolCall
	// calls are the numbers of the calls' events.
	calls map[string]int64
	files map[string]*changedFile
	// contents holds what files contain as far as the calls say it.
	contents map[string]string
}

func (f *changeFold) add(e *event.Event) {
	switch d := e.Data.(type) {
	case event.RunStarted:
		f.dir = d.Workspace
		f.root = cmp.Or(f.root, f.dir)
	case event.ToolCall:
		f.about[d.CallID] = d
		if f.calls[d.CallID] == 0 {
			f.calls[d.CallID] = e.Seq
		}
	case event.ToolResult:
		if call, known := f.about[d.CallID]; known {
			f.settle(e.Run, call, d)
			delete(f.about, d.CallID)
		}
	}
}

// settle adds the files of a call that has a result.
func (f *changeFold) settle(run string, call event.ToolCall, d event.ToolResult) {
	change, known := fs.ChangeOf(call.Tool, call.Args)
	w := fileWrite{Run: run, Seq: f.calls[call.CallID], CallID: call.CallID, Name: view.Label(call), State: stateOf(d)}
	if w.State != view.Done {
		w.Why = view.Complaint(d.Output)
	}
	if known {
		name := f.named(path.Clean(change.Path))
		f.write(name, change, w)
		return
	}
	if call.Facts == nil {
		return
	}
	for _, p := range call.Facts.Paths {
		if p.Write && !(p.Outside || p.Tree || p.Unknown || p.Given || p.Alias || p.Pattern || p.Scratch || p.Repository) {
			name := f.named(p.Path)
			delete(f.contents, name)
			f.append(name, w)
		}
	}
}

// named returns the name of a file among those of all runs.
func (f *changeFold) named(name string) string {
	if f.dir == f.root {
		return name
	}
	if within, err := filepath.Rel(f.root, filepath.Join(f.dir, name)); err == nil && filepath.IsLocal(within) {
		return filepath.ToSlash(within)
	}
	return filepath.Join(f.dir, name)
}

// write adds a call of a file tool with its diff.
func (f *changeFold) write(name string, c fs.Change, w fileWrite) {
	before, known := f.contents[name]
	after := c.New
	switch {
	case c.Overwrite:
		w.Whole = !known
	case known && strings.Contains(before, c.Old):
		n := 1
		if c.All {
			n = -1
		}
		after = strings.Replace(before, c.Old, c.New, n)
	default:
		before, known = c.Old, false
	}
	w.Diff, w.Cut = diffOf(before, after)
	if w.State == view.Done {
		if (known || c.Overwrite) && len(after) <= longestKept {
			f.contents[name] = after
		} else {
			delete(f.contents, name)
		}
	}
	f.append(name, w)
}

func (f *changeFold) append(name string, w fileWrite) {
	if f.files[name] == nil {
		f.files[name] = &changedFile{Path: name}
	}
	f.files[name].Calls = append(f.files[name].Calls, w)
}

// stateOf returns how a call ended.
func stateOf(d event.ToolResult) view.State {
	switch {
	case !d.IsError:
		return view.Done
	case slices.Contains([]event.ErrorType{event.ErrorRejected, event.ErrorExpired}, d.ErrorType):
		return view.Rejected
	case d.ErrorType == event.ErrorDenied:
		return view.Denied
	}
	return view.Failed
}

// diffOf returns the lines in which two texts differ, with three lines around.
func diffOf(before, after string) (diff string, cut bool) {
	_, diff, _ = strings.Cut(string(textdiff.Diff("before", []byte(before), "after", []byte(after))), "\n+++ after\n")
	if len(diff) > longestDiff {
		return strings.ToValidUTF8(diff[:longestDiff], ""), true
	}
	return diff, false
}
