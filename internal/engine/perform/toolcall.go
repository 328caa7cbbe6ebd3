package perform

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/tool"
)

// Resolve establishes the facts about a call. If a declaration panics over the
// call's arguments, the call gets a problem and the run continues.
func (p *Performer) Resolve(a machine.Resolve) event.ToolCall {
	resolved, err := Guard(func() (event.ToolCall, error) {
		return p.Tools.Resolve(a.CallID, a.Call), nil
	}, func(message string) error { return errors.New(message) })
	if err != nil {
		resolved = Unresolved(a)
		resolved.Problem = &event.Problem{
			Type: event.ErrorPanic, Message: "the declaration of " + a.Call.Name + " " + err.Error(),
		}
	}
	resolved.EditedBy = a.EditedBy
	return resolved
}

// Unresolved returns the record of a call about which nothing is known.
func Unresolved(a machine.Resolve) event.ToolCall {
	c := a.Call
	return event.ToolCall{
		CallID: a.CallID, ProviderID: c.ProviderID, Tool: c.Name, Args: c.Args, ArgsText: c.ArgsText,
		Effect: event.EffectAtMostOnce, Digest: tool.Digest(c.Name, c.Args, c.ArgsText), EditedBy: a.EditedBy,
	}
}

// Links connects a call to its own run.
type Links struct {
	// Note journals data about the running call, and returns once it is committed.
	Note func(ctx context.Context, data ...event.Data) error
	// Post sends a message to the parent; nil if there is none that carries messages.
	Post func(ctx context.Context, to, text string, kind event.MessageKind) (string, error)
	// Seen returns the digest of a file that the run has seen.
	Seen func(path string) (string, bool)
	// Run runs an agent for the call, below the run, and returns how it ended.
	Run func(ctx context.Context, name string, input json.RawMessage) (event.Outcome, error)
	// Sampled is what the run knows of earlier samplings.
	Sampled *drive.Sampled
}

// toolCall is an attempt at a tool call.
type toolCall struct {
	*Performer
	Links
	a       machine.RunTool
	tool    tool.Tool
	known   bool
	timeout time.Duration
	start   time.Time
	// args is the call's own copy, which the tool may change.
	args []byte
	// cycle is the cycle of the reports.
	cycle int
	// task is the newest task that was kept.
	task json.RawMessage

	mu sync.Mutex
	// reported is the time of the last published report, and ended is set when the call
	// has ended.
	reported time.Time
	ended    bool
	printed  printed
}

// RunTool returns the effect of an attempt at a tool call in a cycle.
func (p *Performer) RunTool(a machine.RunTool, cycle int, links Links) Effect {
	c := &toolCall{Performer: p, Links: links, a: a, cycle: cycle, args: bytes.Clone(a.Args), start: p.Clock.Awake(), task: a.Input.Task}
	c.tool, c.known = p.Tools.Lookup(a.Tool)
	var err error
	c.timeout, err = Guard(func() (time.Duration, error) { return c.tool.AttemptTimeout(a.Args), nil },
		func(message string) error { return errors.New(message) })
	if err != nil {
		c.timeout = tool.DefaultTimeout
	}
	return Effect{Work: c, Timeout: c.timeout}
}

// Do implements [Work].
func (c *toolCall) Do(ctx context.Context) []event.Data {
	a := &c.a
	if !c.known {
		return c.settle(ctx, tool.Result{}, &tool.Error{
			Type: event.ErrorUnavailable, Message: "the tool " + a.Tool + " is not available any more", NothingCame: true,
		})
	}
	if a.Sandbox && !c.tool.Sandboxed {
		return c.settle(ctx, tool.Result{}, &tool.Error{
			Type: event.ErrorDenied, Message: "not permitted: a rule puts the call into the sandbox, and " + a.Tool + " does not run in one",
			NothingCame: true,
		})
	}
	r, err := Guard(func() (tool.Result, error) { return c.ObserveTool(ctx, *a, c.call) }, ToolPanic)
	c.end()
	settled := c.withTree(ctx, &c.tool, *a, c.settle(ctx, r, err))
	if r.Server != nil {
		settled = append([]event.Data{*r.Server}, settled...)
	}
	return settled
}

// call runs the tool.
func (c *toolCall) call(ctx context.Context) (tool.Result, error) {
	a := &c.a
	return c.tool.Run(ctx, tool.Call{
		ID: a.CallID, Key: a.Key, Attempt: a.Attempt, Spent: a.Spent, Args: c.args, Input: a.Input.Answer, Task: bytes.Clone(a.Input.Task), Run: c, Facts: a.Facts,
		MaxResultChars: max(a.MaxResultChars, 0), Results: c.Record.Blobs, Sandbox: a.Sandbox,
		Redact: c.Record.Secrets.Text, Seen: c.Seen, Post: c.Post,
	})
}

// GiveUp implements [Work].
func (c *toolCall) GiveUp(ctx context.Context, why error) []event.Data {
	return c.settle(ctx, tool.Result{}, ToolPanic("was given up: "+why.Error()))
}

func (c *toolCall) settle(ctx context.Context, r tool.Result, err error) []event.Data {
	a := c.a
	lasted := c.Clock.Awake().Sub(c.start)
	if later, is := errors.AsType[*tool.NotYet](err); is && c.task != nil && context.Cause(ctx) == nil {
		until := c.Clock.Now().Add(later.Wait).UTC()
		return []event.Data{event.ToolTask{CallID: a.CallID, Attempt: a.Attempt, Task: c.task, Until: &until}}
	}
	asks, wrong := c.inputRequired(a, err)
	if asks != nil {
		asks.DurationMs = lasted.Milliseconds()
		return []event.Data{*asks}
	}
	if wrong != nil {
		err = wrong
	}
	e := c.ToolResult(ctx, a, r, err, c.timeout)
	e.DurationMs = lasted.Milliseconds()
	return []event.Data{c.Record.Blobs.Detach(settledAttempt(ctx, a, e, err))}
}

// reportInterval is the least time between two reports of a call.
const reportInterval = 100 * time.Millisecond

// Report implements [tool.Run].
func (c *toolCall) Report(done, total float64, message string) {
	now := c.Clock.Awake()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || now.Sub(c.reported) < reportInterval {
		return
	}
	c.reported = now
	c.Deltas.report(c.cycle, event.ToolProgress{
		CallID: c.a.CallID, Attempt: c.a.Attempt, Done: done, Total: total, Message: c.Record.Secrets.Text(message),
	})
}

// end makes the call drop later reports and output.
func (c *toolCall) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	c.publishRest()
}

var _ tool.Run = (*toolCall)(nil)

// Keep implements [tool.Run].
func (c *toolCall) Keep(ctx context.Context, task json.RawMessage) error {
	if !json.Valid(task) || len(task) > maxTask || c.Record.Secrets.Text(string(task)) != string(task) {
		return errors.New("what is to be kept of the task is no JSON, too large, or holds a secret")
	}
	c.task = bytes.Clone(task)
	return c.Note(ctx, event.ToolTask{CallID: c.a.CallID, Attempt: c.a.Attempt, Task: c.task})
}

// Ask implements [tool.Run].
func (c *toolCall) Ask(ctx context.Context, f event.Form) (event.FormAnswer, error) {
	later := &tool.InputRequired{Form: f}
	asked, err := c.inputRequired(c.a, later)
	if err != nil {
		return event.FormAnswer{}, err
	}
	if c.Env.Ask == nil || asked == nil {
		return event.FormAnswer{}, later
	}
	asked.Live = true
	q := asked.Question()
	r, err := Guard(func() (event.Resolution, error) {
		r, err := c.Env.Ask(ctx, q.Clone())
		if err == nil {
			err = drive.CheckDecision(&q, r)
		}
		return r, err
	}, func(message string) error { return errors.New("the asker " + message) })
	if err != nil || r.Kind == event.ApprovalExpired || q.Late(c.Clock.Now()) {
		return event.FormAnswer{}, later
	}
	r.Args, r.At, r.Command = bytes.Clone(r.Args), c.Clock.Now().UTC(), 0
	if err := c.Note(ctx, *asked, q.Resolve(r)); err != nil {
		return event.FormAnswer{}, later
	}
	return event.FormAnswer{Kind: r.Kind, Input: r.Args, Reason: r.Reason, State: f.State}, nil
}

// maxTask bounds the stored state of a task.
const maxTask = 64 << 10

// ToolPanic is the error of a tool that panicked or did not return.
func ToolPanic(message string) error {
	return &tool.Error{Type: event.ErrorPanic, Message: "the tool " + message}
}

// ToolResult returns the settlement of a call with a tool's result.
func (p *Performer) ToolResult(ctx context.Context, a machine.RunTool, r tool.Result, err error, timeout time.Duration) event.ToolResult {
	media, left := drive.Carried(r.Media)
	e := event.ToolResult{
		CallID: a.CallID, Tool: a.Tool, IsError: r.IsError, ErrorType: r.ErrorType, ExitCode: r.ExitCode,
		Media: media, Tools: r.Tools, Untrusted: r.Untrusted, Private: r.Private, EndsRun: r.EndsRun, Truncated: r.Truncated, Pin: r.Pin, Reached: r.Reached, Changed: r.Changed, Files: r.Files,
	}
	// Redact before cutting, or half of a secret could remain.
	r.Output = p.Record.Secrets.Text(r.Output)
	if r.Raw != "" {
		e.Raw = p.Record.Blobs.Keep([]byte(p.Record.Secrets.Text(r.Raw)))
		r.Output += p.Record.Overwritten(e.Raw, r.Overwritten)
	}
	if r.Structured != nil {
		e.Structured = p.Record.Blobs.Keep([]byte(p.Record.Secrets.Text(string(r.Structured))))
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
		message = p.Record.Secrets.Text(message)
		e.ErrorType, came = kind, !own || r.Output != "" || len(r.Media) > 0
		x = p.Record.ExcerptOfError(kind, message, r, a.MaxResultChars)
	} else {
		x = p.Record.Excerpt(r.Output, a.MaxResultChars, r.Truncated)
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
	case errors.Is(cause, ErrTimeout):
		return event.ErrorTimeout, fmt.Sprintf("the call was stopped after its timeout of %s", timeout), true
	case errors.As(cause, new(OutOfTime)):
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

// inputRequired returns the question of an attempt that asks a person for input, nil
// for any other attempt, and the error in a form that cannot be asked.
func (p *Performer) inputRequired(a machine.RunTool, err error) (*event.ToolInputRequired, error) {
	needs, ok := errors.AsType[*tool.InputRequired](err)
	if !ok {
		return nil, nil
	}
	f := needs.Form
	clean := p.Record.Secrets.Text
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
		d.ExpiresAt = new(p.Clock.Now().Add(a.Input.Patience).UTC())
	}
	return &d, nil
}

// transience reports whether another attempt may succeed, and the earliest time for it,
// if known: the tool marked its error as temporary, or the network timed out. A call
// that the run itself stopped did not fail.
func transience(ctx context.Context, err error) (after *time.Duration, ok bool) {
	if cause := context.Cause(ctx); err == nil || cause != nil && !errors.Is(cause, ErrTimeout) {
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

// treePatience bounds the hashing of the workspace after a call.
const treePatience = time.Second

// withTree adds the workspace's hash to a call's settlement, if the call may
// have changed the workspace.
func (p *Performer) withTree(ctx context.Context, t *tool.Tool, a machine.RunTool, settled []event.Data) []event.Data {
	e, ok := settled[0].(event.ToolResult)
	if !ok || p.Tree == nil || t.ReadOnly || a.Facts == nil || a.Facts.Risk == event.RiskRead || ctx.Err() != nil {
		return settled
	}
	if e.Tree = p.tree(ctx, treePatience); e.Tree == "" {
		return settled
	}
	return []event.Data{e}
}

// Observe adds the workspace's hash to an iteration. It may take longer than
// after a call, because it decides whether the loop is stuck.
func (p *Performer) Observe(ctx context.Context, a machine.Observe) event.Data {
	a.Iteration.Tree = p.tree(ctx, 10*treePatience)
	return a.Iteration
}

// tree returns the workspace's hash, empty if it takes too long.
func (p *Performer) tree(ctx context.Context, patience time.Duration) string {
	if p.Tree == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	state, err := Guard(func() (string, error) { return p.Tree(ctx) }, adapterPanic)
	if err != nil {
		return ""
	}
	return state
}
