// Package kinds is the one table of the kinds of files that can be run. The command
// line, the server and the control of runs ask it which functions a file has, or
// the run that was started from one.
//
// A kind is added by its line in [All]. The line calls a package of the kind's own,
// in launch or beside it, which makes the [launch.Kind]: how such a file is
// recognised, checked and launched, and how its runs go on. The
// machine of its runs has a line in package versions, and the templates of 'pawl
// init' are directories of internal/cli/templates.
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

// All are the kinds. A file is of the one that recognises it; what none does the
// first one refuses.
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

// File is a file of a kind.
type File struct {
	launch.File
	Kind launch.Kind
}

// Read reads a file, once: it may be a pipe.
func Read(path string) (File, error) {
	text, err := spec.ReadFile(path)
	if err != nil {
		return File{}, err
	}
	return fileOf(launch.File{Path: path, Text: text}), nil
}

// Sent returns the file of a text that a client sent. name stands for the file in
// problems; ".json" at its end makes the text JSON.
func Sent(name string, text []byte) File {
	return fileOf(launch.File{Path: name, Text: text, Sent: true})
}

// Kept is a file of this machine as it was when its text was read.
func Kept(path string, text []byte) File { return fileOf(launch.File{Path: path, Text: text}) }

func fileOf(f launch.File) File {
	k, known := Recognise(spec.ParseHeading(f.Text))
	if !known {
		k = All()[0]
	}
	return File{f, k}
}

// Recognise returns the kind of a file with a heading.
func Recognise(h spec.Heading) (k launch.Kind, known bool) {
	all := All()
	if i := slices.IndexFunc(all, func(k launch.Kind) bool { return k.Recognises(h) }); i >= 0 {
		return all[i], true
	}
	return launch.Kind{}, false
}

// Check is that of the file's kind, see [launch.Kind].
func (f File) Check(o launch.Options) ([]decode.Problem, error) { return f.Kind.Check(f.File, o) }

// Launch is that of the file's kind, see [launch.Kind].
func (f File) Launch(input string, o launch.Options) (event.RunStarted, perform.Env, error) {
	return f.Kind.Launch(f.File, input, o)
}

// Signature is that of the file's kind, see [launch.Kind].
func (f File) Signature(o launch.Options) (launch.Signature, error) {
	if f.Kind.Signature == nil {
		return launch.Signature{}, cannot(f.Kind, "is started by no file")
	}
	return f.Kind.Signature(f.File, o)
}

// Plan is that of the file's kind, see [launch.Kind].
func (f File) Plan(o launch.Options) (plan.Plan, error) {
	if f.Kind.Plan == nil {
		return plan.Plan{}, cannot(f.Kind, "is one agent, of which there is nothing to draw")
	}
	return f.Kind.Plan(f.File, o)
}

// Explain is that of the file's kind, see [launch.Kind].
func (f File) Explain(call string, o launch.Options) (launch.Explanation, error) {
	if f.Kind.Explain == nil {
		return launch.Explanation{}, cannot(f.Kind, "makes no calls that could be explained")
	}
	return f.Kind.Explain(f.File, call, o)
}

// Call is that of the file's kind, see [launch.Kind].
func (f File) Call(ctx context.Context, call string, o launch.Options) (tool.Result, error) {
	if f.Kind.Call == nil {
		return tool.Result{}, cannot(f.Kind, "has no programs of its own; call those of its agents' files")
	}
	return f.Kind.Call(ctx, f.File, call, o)
}

// ErrCannot is returned for what runs of a kind cannot do.
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

// Resume gives the environment of a run that goes on.
func Resume(started event.RunStarted, o launch.Options) (perform.Env, error) {
	k, err := OfRun(started)
	if err != nil {
		return perform.Env{}, err
	}
	return k.Resume(started, o)
}

// Continue prepares a run that goes on where an ended one stopped.
func Continue(ctx context.Context, store journal.Store, run, input string, o launch.Options) (event.RunStarted, perform.Env, error) {
	fail := func(err error) (event.RunStarted, perform.Env, error) { return event.RunStarted{}, perform.Env{}, err }
	started, err := drive.At[event.RunStarted](ctx, store, run, 0)
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
	return k.Continue(ctx, store, run, input, o)
}

// Fork prepares what a fork of a run does otherwise.
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

// Redactor returns a redactor for the secrets of a run's file, which input for the
// run passes through. It is nil if there are none; missing lists those whose values
// are unavailable here.
func Redactor(started event.RunStarted) (r *secret.Redactor, missing []string, err error) {
	k, err := OfRun(started)
	if err != nil || k.Redactor == nil {
		return nil, nil, err
	}
	return k.Redactor(started)
}

// CheckCall says what stands against a call of a run's tool before policy would
// judge it. It runs nothing.
func CheckCall(started event.RunStarted, c llm.ToolCall) (*event.Problem, error) {
	k, err := OfRun(started)
	if err != nil || k.CheckCall == nil {
		return nil, err
	}
	return k.CheckCall(started, c)
}

// Template is a way to begin with a file of a kind.
type Template struct {
	launch.Template
	Kind launch.Kind
}

// Templates are those of all kinds.
func Templates() []Template {
	var all []Template
	for _, k := range All() {
		for _, t := range k.Templates {
			all = append(all, Template{t, k})
		}
	}
	return all
}
