package fs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
)

// pathFunc returns the path in a call's arguments, as the model wrote it.
type pathFunc func(args json.RawMessage) string

// reads declares a tool that reads one file or directory, or a tree: it has no effect
// and may run beside others. The owner's files are private, and trusted unless the
// owner configures otherwise.
func (w *Workspace) reads(t *tool.Tool, verb string, at pathFunc, tree bool) {
	t.Effect, t.ReadOnly, t.Concurrent = event.EffectPure, true, true
	t.Access, t.Describe = w.access(at, false), describe(verb)
	t.Labels = &event.Labels{Private: true}
	w.judged(t, at, event.PathUse{Tree: tree}, event.RiskRead)
}

// writes declares a tool that changes the file in its path argument.
func (w *Workspace) writes(t *tool.Tool, verb string) {
	t.Access, t.Describe = w.access(pathOf, true), describe(verb)
	t.Labels, t.Risk, t.Writing = &event.Labels{}, event.RiskWrite, w.writing
	w.judged(t, pathOf, event.PathUse{Write: true}, event.RiskWrite)
}

// judged declares the file of a call's path argument, and rejects a call whose path
// leads to another file when it runs than when it was judged, because a symbolic
// link may have been put in between.
func (w *Workspace) judged(t *tool.Tool, at pathFunc, use event.PathUse, risk event.Risk) {
	facts := func(args json.RawMessage) event.Facts {
		named := filepath.Clean(at(args))
		p := w.paths.Path(named)
		p.Write, p.Tree = use.Write, use.Tree
		f := event.Facts{Paths: []event.PathUse{p}, Risk: risk, Confined: true}
		for _, alias := range w.paths.Aliases(named) {
			alias.Write, alias.Tree = use.Write, use.Tree
			f.Paths = append(f.Paths, alias)
		}
		if !p.Outside && (!p.Write || w.linked(p.Path)) {
			f = w.withOtherNames(f, t.Name, p)
		}
		return f
	}
	run := t.Run
	t.Facts = facts
	t.Check = func(json.RawMessage) error { return w.here() }
	t.Run = func(ctx context.Context, c tool.Call) (tool.Result, error) {
		if c.Facts != nil && !slices.Equal(facts(c.Args).Paths, c.Facts.Paths) {
			return tool.Result{}, conflict("%s leads to another file now than when the call was permitted; make the call again", quote(at(c.Args)))
		}
		return run(ctx, c)
	}
}

// writing returns the facts of the calls that write a file of the workspace.
func (w *Workspace) writing(file string) []event.Facts {
	var calls []event.Facts
	for _, name := range w.paths.Names(file) {
		if !name.Outside {
			name.Write = true
			calls = append(calls, event.Facts{Paths: []event.PathUse{name}, Risk: event.RiskWrite, Confined: true})
		}
	}
	return calls
}

// withOtherNames adds the protected names of the file that a call uses.
func (w *Workspace) withOtherNames(f event.Facts, by string, used event.PathUse) event.Facts {
	var names []string
	var err error
	switch {
	case w.otherNames != nil:
		names, err = w.otherNames(by, used.Path, used.Write)
	case used.Write:
		err = errors.ErrUnsupported
	}
	if err != nil {
		f.Unclear = append(f.Unclear, "whether "+used.Path+" is another name of something protected is not known")
	}
	for _, name := range names {
		f.Paths = append(f.Paths, event.PathUse{Path: name, Write: used.Write})
	}
	return f
}

// linked reports whether a file has several names: a write reaches all of them.
func (w *Workspace) linked(p string) bool {
	info, err := w.root.Stat(p)
	return err == nil && links(info) > 1
}

// access returns one resource key for each file, whatever the form of the path: keys
// are hierarchical, so a write conflicts with a read of the same file and of every
// directory above it, and with no other.
func (w *Workspace) access(at pathFunc, write bool) func(json.RawMessage) []event.Access {
	return func(args json.RawMessage) []event.Access {
		p, err := w.resolve(at(args))
		if err != nil {
			return []event.Access{{Key: "*", Write: write}}
		}
		return []event.Access{{Key: "file:" + path.Join(w.real, p), Write: write}}
	}
}

// pathOf returns the path argument.
func pathOf(args json.RawMessage) string {
	var a struct {
		Path string `json:"path"`
	}
	_ = json.Unmarshal(args, &a)
	return cmp.Or(a.Path, ".")
}

func describe(verb string) func(json.RawMessage) string {
	return func(args json.RawMessage) string {
		var a struct {
			Path    string `json:"path"`
			Pattern string `json:"pattern"`
		}
		_ = json.Unmarshal(args, &a)
		if a.Pattern == "" {
			return verb + " " + cmp.Or(a.Path, ".")
		}
		return strings.TrimSuffix(verb+" "+a.Pattern+" in "+cmp.Or(a.Path, "."), " in .")
	}
}
