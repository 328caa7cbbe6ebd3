package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/engine/replay"
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/tree"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/shell"
)

// commander is a machine that runs one command and ends when that has.
type commander struct {
	tree.Run
	command machine.RunCommand
}

func (c *commander) Next() []machine.Action { return c.OrPark(c.due()) }

func (c *commander) due() []machine.Action {
	due, more := c.Due()
	if !more {
		return due
	}
	if c.Ran(c.command.ID) == nil {
		return append(due, c.Command(c.command)...)
	}
	return c.End(event.RunTerminatedBy{Reason: event.ReasonConditionMet})
}

// program plays all commands of a run, about which it is known that they change
// nothing.
type program func(ctx context.Context, c tool.Invocation) (tool.Ended, error)

func (p program) Facts(tool.Invocation) (event.Facts, event.Labels) {
	return event.Facts{Risk: event.RiskRead}, event.Labels{Private: true}
}

func (p program) Run(ctx context.Context, c tool.Invocation) (tool.Ended, error) { return p(ctx, c) }

func exits(code int, output string) program {
	return func(context.Context, tool.Invocation) (tool.Ended, error) {
		return tool.Ended{ExitCode: &code, Output: output}, nil
	}
}

// commanded is an engine for commanders, on a store that can fail.
type commanded struct {
	*engine.Engine
	t       *testing.T
	store   *watched
	command machine.RunCommand
	limits  budget.Limits
	env     perform.Env
}

func newCommanded(t *testing.T, c machine.RunCommand, run tool.Commands) *commanded {
	r := &commanded{t: t, store: &watched{Store: memory.New(nil)}, command: c}
	if run != nil {
		r.env.Commands = intended{run, r}
	}
	r.command.ID = "check"
	r.Engine = engine.New(r.store, func(string) (machine.Machine, error) {
		return &commander{Run: tree.Run{Limits: r.limits}, command: r.command}, nil
	}, engine.Options{})
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func (r *commanded) start() *engine.Run {
	r.t.Helper()
	run, err := r.Start(r.t.Context(), event.RunStarted{Vocabulary: event.Version, Machine: "commander/1", Kind: "Toy", Config: json.RawMessage(`{}`)}, r.env)
	if err != nil {
		r.t.Fatal(err)
	}
	return run
}

func (r *commanded) resume(id string) *engine.Run {
	r.t.Helper()
	run, err := r.Resume(r.t.Context(), id, func(event.RunStarted) (perform.Env, error) { return r.env, nil })
	if err != nil {
		r.t.Fatal(err)
	}
	return run
}

// intended runs commands whose last event on disk is their intent.
type intended struct {
	tool.Commands
	r *commanded
}

func (i intended) Run(ctx context.Context, c tool.Invocation) (tool.Ended, error) {
	rows, err := i.r.store.Runs(ctx, journal.Filter{})
	if err == nil && ctx.Err() == nil {
		records, _ := i.r.store.Records(ctx, rows[0].ID, rows[0].Seq-1, 1)
		if len(records) == 0 || records[0].Type != "command.started" {
			i.r.t.Errorf("it runs behind %+v", records)
		}
	}
	return i.Commands.Run(ctx, c)
}

// settled waits for the run's end and gives the events of its command. The run's
// journal is whole, and a replay decides the same.
func (r *commanded) settled(run *engine.Run) (started []event.CommandStarted, finished []event.CommandFinished) {
	r.t.Helper()
	if state, err := run.Wait(r.t.Context()); err != nil || state.Outcome == nil {
		r.t.Fatalf("it stands at %+v, %v", state, err)
	}
	records, err := r.store.Records(r.t.Context(), run.ID, 0, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, rec := range records {
		e, err := event.Decode(rec.Body)
		if err != nil {
			r.t.Fatal(err)
		}
		switch d := e.Data.(type) {
		case event.CommandStarted:
			started = append(started, d)
		case event.CommandFinished:
			finished = append(finished, d)
		}
	}
	if _, err := journal.Verify(r.t.Context(), r.store, run.ID, ""); err != nil {
		r.t.Error(err)
	}
	if found, err := replay.Run(r.t.Context(), r.Past(), run.ID, nil); err != nil || len(found.Divergences) > 0 {
		r.t.Errorf("a replay finds %v, %v", found.Divergences, err)
	}
	return started, finished
}

// The result of a command differs from the error that kept it from ending.
func TestHowACommandEndsIsItsSettlement(t *testing.T) {
	waits := func(ctx context.Context, c tool.Invocation) (tool.Ended, error) {
		<-ctx.Done()
		return tool.Ended{Signal: "terminated", Output: "so far"}, ctx.Err()
	}
	ticks := func(ctx context.Context, c tool.Invocation) (tool.Ended, error) {
		for range 3 {
			select {
			case <-time.After(time.Minute):
				c.Printed(nil)
			case <-ctx.Done():
			}
		}
		return waits(ctx, c)
	}
	for name, test := range map[string]struct {
		run     tool.Commands
		command machine.RunCommand
		rules   policy.Rules
		limits  budget.Limits
		want    event.CommandFinished
		// unstarted says that nothing may have been started.
		unstarted bool
	}{
		"an exit code":    {run: exits(3, "no"), want: event.CommandFinished{ExitCode: new(3), Output: "no"}},
		"a signal":        {run: program(func(context.Context, tool.Invocation) (tool.Ended, error) { return tool.Ended{Signal: "killed"}, nil }), want: event.CommandFinished{Signal: "killed"}},
		"silence":         {run: program(ticks), command: machine.RunCommand{IdleLimit: 2 * time.Minute, WallLimit: time.Hour}, want: event.CommandFinished{Signal: "terminated", ErrorType: event.ErrorTimeout, Limit: event.LimitIdle, Output: "so far", DurationMs: 300_000}},
		"its time is up":  {run: program(ticks), command: machine.RunCommand{IdleLimit: 2 * time.Minute, WallLimit: 150 * time.Second}, want: event.CommandFinished{Signal: "terminated", ErrorType: event.ErrorTimeout, Limit: event.LimitWall, Output: "so far", DurationMs: 150_000}},
		"the run's is up": {run: program(waits), limits: budget.Limits{MaxWallSeconds: 90}, want: event.CommandFinished{Signal: "terminated", ErrorType: event.ErrorTimeout, Limit: "max_wall_time_seconds", Output: "so far", DurationMs: 90_000}},
		"no program": {run: program(func(context.Context, tool.Invocation) (tool.Ended, error) {
			return tool.Ended{}, errors.New("fork: no memory")
		}), want: event.CommandFinished{ErrorType: event.ErrorNotStarted}},
		"a panic": {run: program(func(context.Context, tool.Invocation) (tool.Ended, error) { panic("no") }), want: event.CommandFinished{ErrorType: event.ErrorPanic}},
		"protected paths": {run: program(func(context.Context, tool.Invocation) (tool.Ended, error) {
			return tool.Ended{ExitCode: new(0), Changed: []event.Change{{Path: ".git"}}}, nil
		}), want: event.CommandFinished{ExitCode: new(0), ErrorType: event.ErrorProtected}},
		"nobody to run it": {want: event.CommandFinished{ErrorType: event.ErrorUnavailable}, unstarted: true},
		"a denial": {
			run: exits(0, ""), rules: policy.Rules{Rules: []policy.Rule{{Decision: event.DecisionDeny, Tool: "shell.exec"}}},
			want: event.CommandFinished{ErrorType: event.ErrorDenied, Rule: "tools.rules: deny shell.exec"}, unstarted: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test.command.Argv = []string{"make", "test"}
				r := newCommanded(t, test.command, test.run)
				r.env.Rules, r.limits = test.rules, test.limits
				started, finished := r.settled(r.start())
				if len(finished) != 1 || len(started) > 1 || len(started) == 0 != test.unstarted {
					t.Fatalf("it was started as %+v and settled as %+v", started, finished)
				}
				got := finished[0]
				if (got.Error != "") != (test.want.ErrorType != "") {
					t.Errorf("an error of type %q is explained by %q", got.ErrorType, got.Error)
				}
				got.ID, got.Error, got.Changed = "", "", nil
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Error(diff)
				}
				intent := event.CommandStarted{ID: "check", Argv: []string{"make", "test"}, Dir: ".", Attempt: 1, Effect: event.EffectAtMostOnce}
				if len(started) > 0 && !cmp.Equal(started[0], intent) {
					t.Errorf("the intent is %+v", started[0])
				}
			})
		})
	}
}

// What a command prints is kept whole, is shown in its head and tail, and has no
// secret in it.
func TestTheOutputOfACommandIsBoundedAndRedacted(t *testing.T) {
	const key = "sesame-1234567890"
	r := newCommanded(t, machine.RunCommand{Argv: []string{"cat"}, MaxOutputChars: 100}, exits(0, "begin "+strings.Repeat("x", 5000)+key+" end"))
	r.env.Secrets = secret.NewRedactor(secret.Secret{Name: "KEY", Value: key})
	run := r.start()
	_, finished := r.settled(run)
	got := finished[0]
	if !got.Truncated || !strings.HasPrefix(got.Output, "begin xxx") || !strings.HasSuffix(got.Output, " end") || len(got.Output) > 400 {
		t.Errorf("it shows %q", got.Output)
	}
	whole, err := r.store.Blob(t.Context(), got.Blob)
	if err != nil || len(whole) < 5000 || strings.Contains(string(whole), key) || strings.Contains(got.Output, key) {
		t.Errorf("it keeps %d bytes, %v", len(whole), err)
	}
}

// A cancel ends the command first, and then the run.
func TestACancelEndsTheCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newCommanded(t, machine.RunCommand{Argv: []string{"sleep"}, Effect: event.EffectIdempotent}, program(func(ctx context.Context, _ tool.Invocation) (tool.Ended, error) {
			<-ctx.Done()
			return tool.Ended{Signal: "terminated"}, ctx.Err()
		}))
		run := r.start()
		synctest.Wait()
		if err := r.Send(t.Context(), journal.Command{Run: run.ID, Kind: journal.Cancel, By: "ann"}); err != nil {
			t.Fatal(err)
		}
		_, finished := r.settled(run)
		if state, _ := run.Wait(t.Context()); state.Outcome.Reason != event.ReasonCancelled {
			t.Errorf("the run ended as %+v", state.Outcome)
		}
		if len(finished) != 1 || finished[0].ErrorType != event.ErrorCancelled || finished[0].Signal != "terminated" {
			t.Errorf("the command ended as %+v", finished)
		}
	})
}

// What cuts a command off leaves its intent. Whether it runs again its effect class
// says, and the journal says that it did.
func TestACommandThatWasCutOffRunsAgainWhereItMay(t *testing.T) {
	for _, cut := range []string{"the process dies", "an interruption"} {
		for effect, want := range map[event.Effect]struct {
			attempts int
			kind     map[string]event.ErrorType
		}{
			event.EffectAtMostOnce:   {1, map[string]event.ErrorType{"the process dies": event.ErrorInDoubt, "an interruption": event.ErrorCancelled}},
			event.EffectReconcilable: {1, map[string]event.ErrorType{"the process dies": event.ErrorInDoubt, "an interruption": event.ErrorCancelled}},
			event.EffectIdempotent:   {2, nil},
			event.EffectPure:         {2, nil},
		} {
			t.Run(fmt.Sprint(cut, " ", effect), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					runs := 0
					r := newCommanded(t, machine.RunCommand{Argv: []string{"make"}, Effect: effect}, program(func(ctx context.Context, _ tool.Invocation) (tool.Ended, error) {
						if runs++; runs == 1 {
							<-ctx.Done()
							return tool.Ended{Signal: "terminated"}, ctx.Err()
						}
						return exits(0, "done")(ctx, tool.Invocation{})
					}))
					run := r.start()
					synctest.Wait()
					dead := errors.New("the process dies")
					if cut == "the process dies" {
						r.store.onAppend = func(journal.Batch) error { return dead }
					}
					run.Interrupt()
					if _, err := run.Wait(t.Context()); err != nil {
						mustBe(t, err, dead)
					}
					r.store.onAppend = nil
					time.Sleep(time.Minute) // leases end
					started, finished := r.settled(r.resume(run.ID))
					if runs != want.attempts || len(started) != runs || started[runs-1].Attempt != runs {
						t.Fatalf("it ran %d times, by %+v", runs, started)
					}
					last := finished[len(finished)-1]
					if last.ErrorType != want.kind[cut] || (last.ErrorType == "") != (last.Output == "done") {
						t.Errorf("it is settled as %+v", finished)
					}
				})
			})
		}
	}
}

// An undriven run with a command in doubt accepts a cancel from any sender.
func TestCancelSettlesUndrivenCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newCommanded(t, machine.RunCommand{Argv: []string{"make"}, Effect: event.EffectIdempotent}, program(func(ctx context.Context, _ tool.Invocation) (tool.Ended, error) {
			<-ctx.Done()
			return tool.Ended{}, ctx.Err()
		}))
		run := r.start()
		synctest.Wait()
		r.store.onAppend = func(journal.Batch) error { return errors.New("the process dies") }
		run.Interrupt()
		_, _ = run.Wait(t.Context())
		r.store.onAppend = nil
		time.Sleep(time.Minute) // leases end
		if err := r.Send(t.Context(), journal.Command{Run: run.ID, Kind: journal.Cancel, By: "ann"}); err != nil {
			t.Fatal(err)
		}
		m, err := r.Inspect(t.Context(), run.ID)
		if err != nil {
			t.Fatal(err)
		}
		if o := m.State().Outcome; o == nil || o.Reason != event.ReasonCancelled {
			t.Errorf("it ended as %+v", o)
		}
		if ran := m.(*commander).Ran("check"); ran == nil || ran.ErrorType != event.ErrorInDoubt {
			t.Errorf("the command is settled as %+v", ran)
		}
	})
}

// The same with programs of this machine, as shell.exec starts them.
func TestACommandRunsAProgramOfThisMachine(t *testing.T) {
	for name, test := range map[string]struct {
		command machine.RunCommand
		want    event.CommandFinished
	}{
		"an exit code": {machine.RunCommand{Argv: []string{"sh", "-c", "echo no; exit 3"}}, event.CommandFinished{ExitCode: new(3), Output: "no\n"}},
		"a signal":     {machine.RunCommand{Argv: []string{"sh", "-c", "kill -9 $$"}}, event.CommandFinished{Signal: "killed"}},
		"its input":    {machine.RunCommand{Argv: []string{"cat"}, Stdin: []byte("in")}, event.CommandFinished{ExitCode: new(0), Output: "in"}},
		"silence": {
			machine.RunCommand{Argv: []string{"sh", "-c", "echo up; exec sleep 300"}, IdleLimit: 500 * time.Millisecond, WallLimit: time.Minute},
			event.CommandFinished{Signal: "terminated", Output: "up\n", ErrorType: event.ErrorTimeout, Limit: event.LimitIdle},
		},
		"its time is up": {
			machine.RunCommand{Argv: []string{"sh", "-c", "while :; do echo; sleep 0.05; done >&2"}, IdleLimit: time.Minute, WallLimit: 500 * time.Millisecond, MaxOutputChars: 1},
			event.CommandFinished{Signal: "terminated", ErrorType: event.ErrorTimeout, Limit: event.LimitWall},
		},
		"no such program": {machine.RunCommand{Argv: []string{"no-such-program"}}, event.CommandFinished{ErrorType: event.ErrorNotStarted}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newCommanded(t, test.command, shell.Commands(shell.Options{Dir: t.TempDir()}))
			r.env.Rules = policy.Rules{Declared: true, Open: []string{"shell.exec"}}
			_, finished := r.settled(r.start())
			got := finished[0]
			if got.Limit == event.LimitWall {
				got.Output, got.Blob, got.Truncated = "", "", false
			}
			got.ID, got.Error, got.DurationMs, got.Private, got.Untrusted = "", "", 0, false, false
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A cancel ends a program with all that it started. Then its pipe has no other end.
func TestACancelEndsTheProcessGroupOfACommand(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	r := newCommanded(t, machine.RunCommand{Argv: []string{"sh", "-c", "exec 3>pipe; sleep 300 & echo up >&3; wait"}}, shell.Commands(shell.Options{Dir: dir}))
	r.env.Rules = policy.Rules{Declared: true, Open: []string{"shell.exec"}}
	run := r.start()
	if err := reader.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	up := make([]byte, 3)
	for n := 0; n < len(up); { // the other end may not be open yet
		if k, err := reader.Read(up[n:]); err == nil {
			n += k
		} else if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	}
	if err := r.Send(t.Context(), journal.Command{Run: run.ID, Kind: journal.Cancel, By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if _, finished := r.settled(run); finished[0].ErrorType != event.ErrorCancelled || finished[0].Signal != "terminated" {
		t.Errorf("it ended as %+v", finished[0])
	}
	if rest, err := io.ReadAll(reader); err != nil || len(rest) > 0 {
		t.Errorf("somebody still has the pipe: %q, %v", rest, err)
	}
}

// A program that has run and whose end was not recorded runs again only if that is
// harmless.
func TestAProgramWhoseEndIsLostRunsAgainWhereItMay(t *testing.T) {
	for effect, want := range map[event.Effect]struct {
		ran  string
		kind event.ErrorType
	}{
		event.EffectAtMostOnce: {"ran\n", event.ErrorInDoubt},
		event.EffectIdempotent: {"ran\nran\n", ""},
	} {
		t.Run(string(effect), func(t *testing.T) {
			dir := t.TempDir()
			r := newCommanded(t, machine.RunCommand{Argv: []string{"sh", "-c", "echo ran >>log"}, Effect: effect}, shell.Commands(shell.Options{Dir: dir}))
			r.env.Rules = policy.Rules{Declared: true, Open: []string{"shell.exec"}}
			dead := errors.New("the process dies")
			r.store.onAppend = func(b journal.Batch) error {
				if len(b.Records) > 0 && b.Records[0].Type == "command.finished" {
					return dead
				}
				return nil
			}
			run := r.start()
			_, err := run.Wait(t.Context())
			mustBe(t, err, dead)
			r.store.onAppend = nil
			started, finished := r.settled(r.resume(run.ID))
			log, err := os.ReadFile(filepath.Join(dir, "log"))
			if err != nil || string(log) != want.ran || len(started) != strings.Count(want.ran, "\n") || finished[0].ErrorType != want.kind {
				t.Errorf("the program left %q, %v; it was started as %+v and settled as %+v", log, err, started, finished)
			}
		})
	}
}

// A question of policy is like any other: the run parks for it, a decision counts on
// resume, and another attempt needs another decision.
//
// rows: HAR-68
func TestACommandThatPolicyAsksAboutIsAQuestion(t *testing.T) {
	for name, test := range map[string]struct {
		decisions []journal.CommandKind
		// dies says that the process dies while the first attempt is under way.
		dies bool
		ran  int
		kind event.ErrorType
	}{
		"approved":               {decisions: []journal.CommandKind{journal.Approve}, ran: 1},
		"rejected":               {decisions: []journal.CommandKind{journal.Reject}, kind: event.ErrorRejected},
		"approved twice":         {decisions: []journal.CommandKind{journal.Approve, journal.Approve}, dies: true, ran: 2},
		"approved, then refused": {decisions: []journal.CommandKind{journal.Approve, journal.Reject}, dies: true, ran: 1, kind: event.ErrorRejected},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ran := 0
				r := newCommanded(t, machine.RunCommand{Argv: []string{"make"}, Effect: event.EffectIdempotent, Step: "build"}, program(func(ctx context.Context, c tool.Invocation) (tool.Ended, error) {
					if ran++; ran == 1 && test.dies {
						<-ctx.Done()
						return tool.Ended{}, ctx.Err()
					}
					return exits(0, "done")(ctx, c)
				}))
				r.env.Rules = policy.Rules{Gates: []string{"shell.exec"}}
				run := r.start()
				for i, kind := range test.decisions {
					state, err := run.Wait(t.Context())
					if err != nil || state.Parked == nil || !slices.Equal(state.Parked.CallIDs, []string{"check"}) || len(state.Pending) != 1 {
						t.Fatalf("it stands at %+v, %v", state, err)
					}
					if q := state.Pending[0]; q.Step != "build" || q.Subject != "shell.exec" || slices.Contains(q.Takes, event.ApprovalEdited) {
						t.Errorf("it asks %+v", q)
					}
					if err := r.Send(t.Context(), journal.Command{Run: run.ID, Kind: kind, CallID: "check", By: "ann", Text: "so", At: time.Now()}); err != nil {
						t.Fatal(err)
					}
					if run = r.resume(run.ID); test.dies && i == 0 {
						synctest.Wait()
						r.store.onAppend = func(journal.Batch) error { return errors.New("the process dies") }
						run.Interrupt()
						_, _ = run.Wait(t.Context())
						r.store.onAppend = nil
						time.Sleep(time.Minute) // leases end
						run = r.resume(run.ID)
					}
				}
				_, finished := r.settled(run)
				if ran != test.ran || len(finished) != 1 || finished[0].ErrorType != test.kind || finished[0].Step != "build" {
					t.Errorf("it ran %d times and is settled as %+v", ran, finished)
				}
			})
		})
	}
}

// A run is forked where nothing was under way: before the intent of a command, or
// behind its settlement.
func TestARunIsNotForkedWithinACommand(t *testing.T) {
	r := newCommanded(t, machine.RunCommand{Argv: []string{"make"}}, exits(0, "done"))
	run := r.start()
	r.settled(run)
	records, err := r.store.Records(t.Context(), run.ID, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(records, func(rec journal.Record) bool { return rec.Type == "command.started" })
	for asked, want := range map[int64]int64{records[at].Seq: records[at-1].Seq, records[at+1].Seq: records[at+1].Seq} {
		if b, err := r.Branch(t.Context(), run.ID, asked); err != nil || b.Seq != want {
			t.Errorf("asked for %d it is %+v, %v", asked, b, err)
		}
	}
}

// fragile breaks when it receives a message.
type fragile struct {
	commander
	told bool
}

func (f *fragile) Apply(e *event.Event) error {
	_, said := e.Data.(event.InputReceived)
	f.told = f.told || said
	return f.commander.Apply(e)
}

func (f *fragile) Next() []machine.Action {
	if f.told {
		panic("told")
	}
	return f.commander.Next()
}

// A machine that breaks leaves no command unsettled.
func TestAMachineThatBreaksLeavesNoCommandOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newCommanded(t, machine.RunCommand{Argv: []string{"make"}}, program(func(ctx context.Context, _ tool.Invocation) (tool.Ended, error) {
			<-ctx.Done()
			return tool.Ended{Signal: "terminated"}, ctx.Err()
		}))
		r.Engine = engine.New(r.store, func(string) (machine.Machine, error) {
			return &fragile{commander: commander{command: r.command}}, nil
		}, engine.Options{})
		t.Cleanup(func() { _ = r.Close() })
		run := r.start()
		synctest.Wait()
		if err := r.Send(t.Context(), journal.Command{Run: run.ID, Kind: journal.Input, Text: "so", By: "ann"}); err != nil {
			t.Fatal(err)
		}
		if state, err := run.Wait(t.Context()); err == nil || state.Outcome == nil || state.Outcome.Reason != event.ReasonInternal {
			t.Fatalf("it stands at %+v, %v", state, err)
		}
		records, err := r.store.Records(t.Context(), run.ID, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		settled := slices.IndexFunc(records, func(rec journal.Record) bool { return rec.Type == "command.finished" })
		if settled < 0 || !strings.Contains(string(records[settled].Body), `"terminated"`) {
			t.Errorf("the command is not settled: %+v", records)
		}
	})
}
