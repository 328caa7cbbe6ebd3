package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/toy"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/sqlite"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

// toyProgram is a program that runs a machine which Pawl does not know:
//
//	toy JOURNAL DIES [RUN LATER]
//
// starts a run, or resumes one so much later. DIES is when the process kills
// itself: behind the first commit with an event of that type.
func toyProgram() {
	check := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	store, err := sqlite.Open(ctx, os.Args[1], sqlite.Options{})
	check(err)
	began, o := time.Now(), engine.Options{}
	if len(os.Args) > 3 {
		later, err := time.ParseDuration(os.Args[4])
		check(err)
		o.Now = func() time.Time { return began.Add(later + time.Since(began)) }
	}
	e := engine.New(&deadly{Store: store, dies: os.Args[2]}, toy.Machines, o)
	var r *engine.Run
	if len(os.Args) > 3 {
		r, err = e.Resume(ctx, os.Args[3], func(event.RunStarted) (perform.Env, error) { return toyEnv(), nil })
	} else {
		r, err = e.Start(ctx, toy.Started(), toyEnv())
	}
	check(err)
	state, err := r.Wait(ctx)
	check(err)
	fmt.Println(state.Outcome.FinalOutput)
	check(store.Close())
}

// toyEnv is what a toy has: agents that say yes.
func toyEnv() perform.Env {
	return perform.Env{Evaluate: toy.Evaluate, Commands: toyMake{}, Children: map[string]perform.Child{toy.Helper: {
		Begin: func(json.RawMessage) (event.RunStarted, perform.Env, error) {
			cfg := agent.Config{Targets: []agent.Target{{Model: "test/model", Price: &llm.Price{}}}}
			cfg.Policy.Declared = true
			started, err := agent.Start(cfg.WithDefaults(), llm.UserText("do it"))
			started.Name = toy.Helper
			return started, toyAgent(), err
		},
		Resume: func(string, event.RunStarted) (perform.Env, error) { return toyAgent(), nil },
	}}}
}

func toyAgent() perform.Env {
	set, err := tool.NewSet()
	if err != nil {
		panic(err)
	}
	return perform.Env{Tools: set, Model: func(string) (llm.Model, string, error) {
		return scripted.New("test", scripted.Turn{Text: "yes"}), "model", nil
	}}
}

// toyMake runs the toy's program.
type toyMake struct{}

func (toyMake) Facts(tool.Invocation) (event.Facts, event.Labels) {
	return event.Facts{Risk: event.RiskRead}, event.Labels{}
}

func (toyMake) Run(context.Context, tool.Invocation) (tool.Ended, error) {
	return tool.Ended{ExitCode: new(int)}, nil
}

// deadly is a journal behind one of whose commits the process is killed.
type deadly struct {
	journal.Store
	dies string
}

func (d *deadly) Append(ctx context.Context, b journal.Batch) (int64, error) {
	of := func(r journal.Record) bool { return r.Type == d.dies }
	pos, err := d.Store.Append(ctx, b)
	if slices.ContainsFunc(b.Records, of) {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	return pos, err
}
