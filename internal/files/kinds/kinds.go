// Package kinds is the table of the kinds of runnable files. The command line, the
// server and the control of runs use it to find the functions for a file, or for a run
// that was started from one.
//
// To add a kind, add a line to [All]. The line calls the kind's package, in launch or
// beside it, which returns the [launch.Kind]: functions that recognize, check and
// launch such a file, and resume its runs. Also add the machine of its runs to package
// versions, and the templates of 'pawl init' to internal/cli/templates.
package kinds

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
)

// All returns the kinds. The first kind that recognizes a file handles it; if no kind
// does, the first kind reports the problem.
func All() []launch.Kind {
	return []launch.Kind{
		launch.AgentFiles(),
		launch.WorkflowFiles(),
		launch.TeamFiles(),
		launch.ProcessRuns(),
		launch.LoopFiles(),
		launch.GoalFiles(),
	}
}

// File is a file with its kind.
type File struct {
	launch.File
	Kind launch.Kind
}

// Read reads a file. It reads only once, because the file may be a pipe.
func Read(path string) (File, error) {
	text, err := spec.ReadFile(path)
	if err != nil {
		return File{}, err
	}
	return fileOf(launch.File{Path: path, Text: text}), nil
}

// Sent returns the file for a text that a client sent. name identifies the file in
// problems; with the suffix ".json" the text is parsed as JSON.
func Sent(name string, text []byte) File {
	return fileOf(launch.File{Path: name, Text: text, Sent: true})
}

// Kept returns a file of this machine with the text that was read earlier.
func Kept(path string, text []byte) File { return fileOf(launch.File{Path: path, Text: text}) }

func fileOf(f launch.File) File {
	k, known := Recognise(spec.ParseHeading(f.Text))
	if !known {
		k = All()[0]
	}
	return File{f, k}
}

// Recognise returns the kind of a file with the given heading.
func Recognise(h spec.Heading) (k launch.Kind, known bool) {
	all := All()
	if i := slices.IndexFunc(all, func(k launch.Kind) bool { return k.Recognises(h) }); i >= 0 {
		return all[i], true
	}
	return launch.Kind{}, false
}

// Check calls the function of the file's kind, see [launch.Kind].
func (f File) Check(o launch.Options) ([]decode.Problem, error) { return f.Kind.Check(f.File, o) }

// Launch calls the function of the file's kind, see [launch.Kind].
func (f File) Launch(input string, o launch.Options) (event.RunStarted, perform.Env, error) {
	started, env, err := f.Kind.Launch(f.File, input, o)
	started.Place.Host = o.Here.Host
	return started, env, err
}

// Signature calls the function of the file's kind, see [launch.Kind].
func (f File) Signature(o launch.Options) (launch.Signature, error) {
	if f.Kind.Signature == nil {
		return launch.Signature{}, cannot(f.Kind, "is started by no file")
	}
	return f.Kind.Signature(f.File, o)
}

// Plan calls the function of the file's kind, see [launch.Kind].
func (f File) Plan(o launch.Options) (plan.Plan, error) {
	if f.Kind.Plan == nil {
		return plan.Plan{}, cannot(f.Kind, "is one agent, of which there is nothing to draw")
	}
	return f.Kind.Plan(f.File, o)
}

// Explain calls the function of the file's kind, see [launch.Kind].
func (f File) Explain(call string, o launch.Options) (launch.Explanation, error) {
	if f.Kind.Explain == nil {
		return launch.Explanation{}, cannot(f.Kind, "makes no calls that could be explained")
	}
	return f.Kind.Explain(f.File, call, o)
}

// Call calls the function of the file's kind, see [launch.Kind].
func (f File) Call(ctx context.Context, call string, o launch.Options) (tool.Result, error) {
	if f.Kind.Call == nil {
		return tool.Result{}, cannot(f.Kind, "has no programs of its own; call those of its agents' files")
	}
	return f.Kind.Call(ctx, f.File, call, o)
}

// ErrCannot is returned for an operation that the kind does not support.
var ErrCannot = errors.New("launch")

func cannot(k launch.Kind, what string) error {
	return fmt.Errorf("%w: the run of a file of the kind %s %s", ErrCannot, k.Name, what)
}

// OfRun returns the kind of the file that a run was started from.
func OfRun(started event.RunStarted) (launch.Kind, error) {
	if started.Spec == "" {
		return launch.Kind{}, launch.ErrNoFile
	}
	return named(started.Kind)
}

func named(kind string) (launch.Kind, error) {
	for _, k := range All() {
		if k.Name == kind {
			return k, nil
		}
	}
	return launch.Kind{}, fmt.Errorf("launch: the run is of the kind %q, which this version of pawl does not know", kind)
}

// Resume returns the environment of a run that continues. The error wraps
// [workplace.ErrElsewhere] if the run's files are on another machine.
func Resume(started event.RunStarted, o launch.Options) (perform.Env, error) {
	k, err := OfRun(started)
	if err == nil {
		started.Workspace, err = o.Here.Dir(started.Place, started.Workspace)
	}
	if err != nil {
		return perform.Env{}, err
	}
	return k.Resume(started, o)
}

// Continue prepares a run that continues an ended one.
func Continue(ctx context.Context, store journal.Store, run, input string, o launch.Options) (event.RunStarted, perform.Env, error) {
	fail := func(err error) (event.RunStarted, perform.Env, error) { return event.RunStarted{}, perform.Env{}, err }
	started, _, err := drive.Began(ctx, store, run)
	if err != nil {
		return fail(err)
	}
	k, err := OfRun(started)
	if err == nil && k.Continue == nil {
		err = cannot(k, "cannot be continued")
	}
	if err != nil {
		return fail(err)
	}
	began := event.Place{Host: o.Here.Host}
	if o.Workspace == "" {
		dir, err := o.Here.Dir(started.Place, started.Workspace)
		if err != nil {
			return fail(err)
		}
		if began = started.Place; dir != started.Workspace {
			o.Workspace = dir
		}
	}
	started, env, err := k.Continue(ctx, store, run, input, o)
	started.Place = began
	return started, env, err
}

// Fork prepares the changes of a fork.
func Fork(b *drive.Branch, c launch.ForkChanges, o launch.Options) (event.RunForked, []string, error) {
	k, err := named(b.Started.Kind)
	if err == nil && k.Fork == nil {
		err = cannot(k, "cannot be forked")
	}
	if err != nil {
		return event.RunForked{}, nil, err
	}
	return k.Fork(b, c, o)
}

// Redactor returns a redactor for the secrets of a run's file; apply it to input for
// the run. It is nil if the file has no secrets. missing lists the secrets without a
// value on this machine.
func Redactor(started event.RunStarted) (r *secret.Redactor, missing []string, err error) {
	k, err := OfRun(started)
	if err != nil || k.Redactor == nil {
		return nil, nil, err
	}
	return k.Redactor(started)
}

// CheckCall returns the problem that blocks a tool call before policy judges it, or
// nil. It runs nothing.
func CheckCall(started event.RunStarted, c llm.ToolCall) (*event.Problem, error) {
	k, err := OfRun(started)
	if err != nil || k.CheckCall == nil {
		return nil, err
	}
	return k.CheckCall(started, c)
}

// Template is a starting point for a file of a kind.
type Template struct {
	launch.Template
	Kind launch.Kind
}

// Templates returns the templates of all kinds.
func Templates() []Template {
	var all []Template
	for _, k := range All() {
		for _, t := range k.Templates {
			all = append(all, Template{t, k})
		}
	}
	return all
}
