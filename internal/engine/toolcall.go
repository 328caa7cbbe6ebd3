package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/tool"
)

// resolve establishes the facts about a call. If a declaration panics over the
// call's arguments, the call gets a problem and the run continues.
func (env *environment) resolve(a machine.Resolve) event.ToolCall {
	resolved, err := guard(func() (event.ToolCall, error) {
		return env.Tools.Resolve(a.CallID, a.Call), nil
	}, func(message string) error { return errors.New(message) })
	if err != nil {
		resolved = unresolved(a)
		resolved.Problem = &event.Problem{
			Type: event.ErrorPanic, Message: "the declaration of " + a.Call.Name + " " + err.Error(),
		}
	}
	resolved.EditedBy = a.EditedBy
	return resolved
}

// unresolved is the record of a call about which nothing is known.
func unresolved(a machine.Resolve) event.ToolCall {
	c := a.Call
	return event.ToolCall{
		CallID: a.CallID, ProviderID: c.ProviderID, Tool: c.Name, Args: c.Args, ArgsText: c.ArgsText,
		Effect: event.EffectAtMostOnce, Digest: tool.Digest(c.Name, c.Args, c.ArgsText), EditedBy: a.EditedBy,
	}
}

// beginTool journals the intent of a tool call and queues the call. A call whose
// time has not come sets the alarm instead.
func (cs *calls) beginTool(a machine.RunTool) (bool, error) {
	if a.NotBefore.After(cs.env.clock.now()) {
		cs.alarm.set(a.NotBefore)
		if len(cs.effects.pending) == 0 {
			cs.alarm.waiting = journal.WaitRetry
		}
		return false, nil
	}
	if now, changed := cs.changedSince(a); changed {
		return true, cs.stage(now)
	}
	if err := cs.stage(event.ToolStarted{CallID: a.CallID, Attempt: a.Attempt, Key: a.Key}); err != nil {
		return false, err
	}
	cs.effects.add(func(work context.Context) { cs.runTool(work, a) })
	return true, nil
}

// changedSince returns new facts about an approved call if a file that it runs
// has changed since the approval.
func (cs *calls) changedSince(a machine.RunTool) (now event.ToolCall, changed bool) {
	if a.Again == nil {
		return now, false
	}
	now = cs.env.resolve(*a.Again)
	return now, now.Facts == nil || !slices.Equal(now.Facts.Runs, a.Facts.Runs)
}

func (cs *calls) runTool(work context.Context, a machine.RunTool) {
	t, known := cs.env.Tools.Lookup(a.Tool)
	timeout, err := guard(func() (time.Duration, error) { return t.AttemptTimeout(a.Args), nil },
		func(message string) error { return errors.New(message) })
	if err != nil {
		timeout = tool.DefaultTimeout
	}
	ctx, cancel := cs.effects.until(work, timeout)
	args := bytes.Clone(a.Args) // a tool may change them; the conversation has its own
	start, post := cs.env.clock.awake(), cs.above.poster(a.CallID)
	under := &underWay{calls: cs, of: a, cycle: cs.log.cycle, task: a.Input.Task}
	settle := func(ctx context.Context, r tool.Result, err error) []event.Data {
		lasted := cs.env.clock.awake().Sub(start)
		if later, is := errors.AsType[*tool.NotYet](err); is && under.task != nil && context.Cause(ctx) == nil {
			until := cs.env.clock.now().Add(later.Wait).UTC()
			return []event.Data{event.ToolTask{CallID: a.CallID, Attempt: a.Attempt, Task: under.task, Until: &until}}
		}
		asks, wrong := cs.env.inputRequired(a, err)
		if asks != nil {
			asks.DurationMs = lasted.Milliseconds()
			return []event.Data{*asks}
		}
		if wrong != nil {
			err = wrong
		}
		e := cs.env.toolResult(ctx, a, r, err, timeout)
		e.DurationMs = lasted.Milliseconds()
		return []event.Data{cs.env.record.Blobs.Detach(settledAttempt(ctx, a, e, err))}
	}
	cs.effects.launch(ctx, cancel, effect{
		id: a.CallID,
		do: func(ctx context.Context) []event.Data {
			if !known {
				return settle(ctx, tool.Result{}, &tool.Error{
					Type: event.ErrorUnavailable, Message: "the tool " + a.Tool + " is not available any more", NothingCame: true,
				})
			}
			if a.Sandbox && !t.Sandboxed {
				return settle(ctx, tool.Result{}, &tool.Error{
					Type: event.ErrorDenied, Message: "not permitted: a rule puts the call into the sandbox, and " + a.Tool + " does not run in one",
					NothingCame: true,
				})
			}
			r, err := guard(func() (tool.Result, error) {
				return cs.env.observeTool(ctx, a, func(ctx context.Context) (tool.Result, error) {
					return t.Run(ctx, tool.Call{
						ID: a.CallID, Key: a.Key, Attempt: a.Attempt, Spent: a.Spent, Args: args, Input: a.Input.Answer, Task: bytes.Clone(a.Input.Task), Run: under, Facts: a.Facts,
						MaxResultChars: max(a.MaxResultChars, 0), Results: cs.env.record.Blobs, Sandbox: a.Sandbox,
						Redact: cs.env.record.Secrets.Text, Seen: cs.log.files.digest, Post: post,
					})
				})
			}, toolPanic)
			under.end()
			settled := cs.env.withTree(ctx, &t, a, settle(ctx, r, err))
			if r.Server != nil {
				settled = append([]event.Data{*r.Server}, settled...)
			}
			return settled
		},
		giveUp: func(ctx context.Context, why error) []event.Data {
			return settle(ctx, tool.Result{}, toolPanic("was given up: "+why.Error()))
		},
	})
}

// underWay is a run, for a call that it makes.
type underWay struct {
	calls *calls
	of    machine.RunTool
	cycle int
	// task is the newest that was kept.
	task json.RawMessage

	mu sync.Mutex
	// reported is when the last report was published, and ended says that the call has
	// ended.
	reported time.Time
	ended    bool
}

// reportInterval is the least time between two reports of a call.
const reportInterval = 100 * time.Millisecond

// Report implements [tool.Run].
func (u *underWay) Report(done, total float64, message string) {
	now := u.calls.env.clock.awake()
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ended || now.Sub(u.reported) < reportInterval {
		return
	}
	u.reported = now
	u.calls.env.live.report(u.cycle, event.ToolProgress{
		CallID: u.of.CallID, Attempt: u.of.Attempt, Done: done, Total: total, Message: u.calls.env.record.Secrets.Text(message),
	})
}

// end has later reports dropped.
func (u *underWay) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ended = true
}

var _ tool.Run = (*underWay)(nil)

// Keep implements [tool.Run].
func (u *underWay) Keep(ctx context.Context, task json.RawMessage) error {
	if !json.Valid(task) || len(task) > maxTask || u.calls.env.record.Secrets.Text(string(task)) != string(task) {
		return errors.New("what is to be kept of the task is no JSON, too large, or holds a secret")
	}
	u.task = bytes.Clone(task)
	return u.calls.effects.note(ctx, event.ToolTask{CallID: u.of.CallID, Attempt: u.of.Attempt, Task: u.task})
}

// Ask implements [tool.Run].
func (u *underWay) Ask(ctx context.Context, f event.Form) (event.FormAnswer, error) {
	later := &tool.InputRequired{Form: f}
	asked, err := u.calls.env.inputRequired(u.of, later)
	if err != nil {
		return event.FormAnswer{}, err
	}
	if u.calls.env.Ask == nil || asked == nil {
		return event.FormAnswer{}, later
	}
	asked.Live = true
	q := asked.Question()
	r, err := guard(func() (event.Resolution, error) {
		r, err := u.calls.env.Ask(ctx, q.Clone())
		if err == nil {
			err = decided(&q, r)
		}
		return r, err
	}, func(message string) error { return errors.New("the asker " + message) })
	if err != nil || r.Kind == event.ApprovalExpired || q.Late(u.calls.env.clock.now()) {
		return event.FormAnswer{}, later
	}
	r.Args, r.At, r.Command = bytes.Clone(r.Args), u.calls.env.clock.now().UTC(), 0
	if err := u.calls.effects.note(ctx, *asked, q.Resolve(r)); err != nil {
		return event.FormAnswer{}, later
	}
	return event.FormAnswer{Kind: r.Kind, Input: r.Args, Reason: r.Reason, State: f.State}, nil
}

// maxTask bounds what is kept of a task.
const maxTask = 64 << 10

func toolPanic(message string) error {
	return &tool.Error{Type: event.ErrorPanic, Message: "the tool " + message}
}

// toolResult returns the settlement of a call with a tool's result.
func (env *environment) toolResult(ctx context.Context, a machine.RunTool, r tool.Result, err error, timeout time.Duration) event.ToolResult {
	media, left := drive.Carried(r.Media)
	e := event.ToolResult{
		CallID: a.CallID, Tool: a.Tool, IsError: r.IsError, ErrorType: r.ErrorType, ExitCode: r.ExitCode,
		Media: media, Tools: r.Tools, Untrusted: r.Untrusted, Private: r.Private, EndsRun: r.EndsRun, Truncated: r.Truncated, Pin: r.Pin, Reached: r.Reached, Changed: r.Changed, Files: r.Files,
	}
	// Redact before cutting, or half of a secret could remain.
	r.Output = env.record.Secrets.Text(r.Output)
	if r.Raw != "" {
		e.Raw = env.record.Blobs.Keep([]byte(env.record.Secrets.Text(r.Raw)))
		r.Output += env.record.Overwritten(e.Raw, r.Overwritten)
	}
	if r.Structured != nil {
		e.Structured = env.record.Blobs.Keep([]byte(env.record.Secrets.Text(string(r.Structured))))
	}
	came := !errors.Is(err, drive.ErrRecorded)
	if !came {
		err = nil
	}
	if left != "" {
		r.Output = strings.TrimLeft(r.Output+"\n\n"+left, "\n")
		e.Truncated = true
	}
	var x drive.Excerpt
	if err != nil {
		e.IsError = true
		kind, message, own := failure(ctx, err, timeout)
		message = env.record.Secrets.Text(message)
		e.ErrorType, came = kind, !own || r.Output != "" || len(r.Media) > 0
		x = env.record.ExcerptOfError(kind, message, r, a.MaxResultChars)
	} else {
		x = env.record.Excerpt(r.Output, a.MaxResultChars, r.Truncated)
	}
	e.Output, e.Blob, e.Truncated = x.Text, x.Blob, e.Truncated || x.Blob != ""
	e.Contains = x.Contains(a.Sought)
	if came {
		e.Untrusted, e.Private = e.Untrusted || a.Labels.Untrusted, e.Private || a.Labels.Private
	}
	return e
}

// failure returns why a call failed: the cause that stopped it, or else the
// tool's error. own reports whether the message contains no content that the
// call fetched.
func failure(ctx context.Context, err error, timeout time.Duration) (kind event.ErrorType, message string, own bool) {
	typed, ok := errors.AsType[*tool.Error](err)
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errTimeout):
		return event.ErrorTimeout, fmt.Sprintf("the call was stopped after its timeout of %s", timeout), true
	case errors.As(cause, new(outOfTime)):
		return event.ErrorTimeout, "the call was stopped because " + cause.Error(), true
	case cause != nil:
		return event.ErrorCancelled, "the call was stopped before it finished", true
	case ok:
		return typed.Type, err.Error(), typed.NothingCame
	}
	return event.ErrorTool, err.Error(), false
}

// settledAttempt returns the event for an attempt at a tool call: the call's
// result, or a failure about which the machine decides first.
func settledAttempt(ctx context.Context, a machine.RunTool, r event.ToolResult, err error) event.Data {
	after, transient := transience(ctx, err)
	r.Retryable = transient
	if !transient || !a.Retries {
		return r
	}
	f := event.ToolAttemptFailed{CallID: a.CallID, Attempt: a.Attempt, Result: r}
	if after != nil {
		f.RetryAfterMs = new(after.Milliseconds())
	}
	return f
}

// inputRequired returns the question of an attempt that asks a person for input, nil for
// any other, and what is wrong with a form that cannot be asked.
func (env *environment) inputRequired(a machine.RunTool, err error) (*event.ToolInputRequired, error) {
	needs, ok := errors.AsType[*tool.InputRequired](err)
	if !ok {
		return nil, nil
	}
	f := needs.Form
	clean := env.record.Secrets.Text
	f.Message, f.URL = clean(f.Message), clean(f.URL)
	if wrong := tool.CheckForm(f); wrong != nil {
		return nil, &tool.Error{Type: event.ErrorTool, Message: "the call asks a person for input, which cannot be asked: " + wrong.Error()}
	}
	if clean(string(f.Schema)) != string(f.Schema) || clean(string(f.State)) != string(f.State) {
		return nil, &tool.Error{Type: event.ErrorTool, Message: "the call asks a person for input with a secret of the run in the form, which is not journalled"}
	}
	d := event.ToolInputRequired{CallID: a.CallID, Attempt: a.Attempt, Tool: a.Tool, Form: f, OnExpiry: a.Input.OnExpiry}
	f.State = nil
	asked, _ := json.Marshal([]any{a.CallID, a.Attempt, f})
	d.Digest = tool.Digest(a.Tool, asked, "")
	if a.Input.Patience > 0 {
		d.ExpiresAt = new(env.clock.now().Add(a.Input.Patience).UTC())
	}
	return &d, nil
}

// transience reports whether another attempt may cure a failure, and the earliest time
// for it, if known: the tool said so, or the network timed out. A call that the run
// itself stopped did not fail.
func transience(ctx context.Context, err error) (after *time.Duration, ok bool) {
	if cause := context.Cause(ctx); err == nil || cause != nil && !errors.Is(cause, errTimeout) {
		return nil, false
	}
	if t, declared := errors.AsType[*tool.TransientError](err); declared {
		return t.RetryAfter, true
	}
	return nil, networkTimeout(err)
}

// networkTimeout reports whether the network timed out. A timeout of the whole
// tool does not count.
func networkTimeout(err error) bool {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Timeout()
	}
	if e, ok := errors.AsType[*net.OpError](err); ok {
		return e.Timeout()
	}
	e, ok := errors.AsType[*net.DNSError](err)
	return ok && e.Timeout()
}

// calls starts effects: calls of models, tools, hooks and commands, each after
// its intent.
type calls struct {
	*core
	above    *parentRun
	requests drive.Requests
	// given is the first cycle whose messages from the environment ([Env.Inputs])
	// are not journalled.
	given int
}

// giveInputs journals the environment's messages up to a cycle whose answer is
// on the way, as if they had arrived meanwhile, so that the decision after the
// answer includes them.
func (cs *calls) giveInputs(cycle int) error {
	for ; cs.given <= cycle; cs.given++ {
		for _, said := range cs.env.Inputs[cs.given] {
			if err := cs.stage(cs.env.record.Blobs.Detach(said)); err != nil {
				return err
			}
		}
	}
	return nil
}

// treePatience bounds the hashing of the workspace after a call.
const treePatience = time.Second

// withTree adds the workspace's hash to a call's settlement, if the call may
// have changed the workspace.
func (env *environment) withTree(ctx context.Context, t *tool.Tool, a machine.RunTool, settled []event.Data) []event.Data {
	e, ok := settled[0].(event.ToolResult)
	if !ok || env.Tree == nil || t.ReadOnly || a.Facts == nil || a.Facts.Risk == event.RiskRead || ctx.Err() != nil {
		return settled
	}
	if e.Tree = env.tree(ctx, treePatience); e.Tree == "" {
		return settled
	}
	return []event.Data{e}
}

// observe adds the workspace's hash to an iteration. It may take longer than
// after a call, because it decides whether the loop is stuck.
func (env *environment) observe(ctx context.Context, a machine.Observe) event.Data {
	a.Iteration.Tree = env.tree(ctx, 10*treePatience)
	return a.Iteration
}

// tree returns the workspace's hash, empty if it takes too long.
func (env *environment) tree(ctx context.Context, patience time.Duration) string {
	if env.Tree == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	state, err := guard(func() (string, error) { return env.Tree(ctx) }, adapterPanic)
	if err != nil {
		return ""
	}
	return state
}
