package agent_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/llm"
)

// play drives a machine by hand: it performs what needs no effect, keeps effects as
// pending for the test to settle, and writes everything down. Each event goes through
// its JSON form to a second machine, which must want the same at every step: a fold
// cannot differ from the run that it repeats. A third one, whose Next is never called,
// must equal the second: Next changes nothing, and the state that a machine keeps
// equals a fresh look at each call.
type play struct {
	t       testing.TB
	live    *agent.Machine
	folded  *agent.Machine
	unasked *agent.Machine
	now     time.Time
	skipped time.Duration // of the time to the next event
	start   time.Time
	seq     int64
	cycle   int
	parent  string // the run that started this one
	journal [][]byte
	log     bytes.Buffer

	call    *machine.CallModel         // in flight
	asleep  *machine.CallModel         // waits for its time
	runs    map[string]machine.RunTool // in flight
	pending []machine.RunTool          // wait for their time
	asked   []event.Question           // by the last Next
	hooks   map[string]machine.RunHook // in flight
}

var epoch = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

// newPlay starts a run of cfg, whose targets are "m/a" unless it names others.
func newPlay(t testing.TB, cfg agent.Config) *play {
	t.Helper()
	p := emptyPlay(t)
	p.starts(cfg)
	return p
}

func (p *play) starts(cfg agent.Config) {
	p.t.Helper()
	started, err := agent.Start(config(cfg), llm.UserText("do it"))
	if err != nil {
		p.t.Fatal(err)
	}
	p.apply(started)
	p.advance()
}

func emptyPlay(t testing.TB) *play {
	return &play{
		t: t, live: agent.New(), folded: agent.New(), unasked: agent.New(), now: epoch, start: epoch,
		runs: map[string]machine.RunTool{}, hooks: map[string]machine.RunHook{},
	}
}

func config(cfg agent.Config) agent.Config {
	if len(cfg.Targets) == 0 {
		cfg.Targets = []agent.Target{{Model: "m/a", Price: &llm.Price{Input: 1e6, Output: 1e6}}}
	}
	cfg.Policy.Declared = true
	return cfg.WithDefaults()
}

func (p *play) note(format string, args ...any) {
	fmt.Fprintf(&p.log, "%8s  %s\n", "", strings.TrimRight(fmt.Sprintf(format, args...), " "))
}

// apply journals one event and checks that a fold agrees.
func (p *play) apply(d event.Data) {
	p.t.Helper()
	if err := p.try(d); err != nil {
		p.t.Fatalf("apply %s: %v\n%s", d.EventType(), err, p.log.String())
	}
}

// try is apply for an event that the machine may refuse.
func (p *play) try(d event.Data) error {
	p.t.Helper()
	if c, ok := d.(event.CycleStart); ok {
		p.cycle = c.Cycle
	}
	e := &event.Event{Seq: p.seq + 1, Run: "r", Parent: p.parent, Time: p.now, SkippedMs: p.skipped.Milliseconds(), Cycle: p.cycle, Data: d}
	body, err := event.Encode(e)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.live.Apply(e); err != nil {
		return err
	}
	p.seq++
	p.journal = append(p.journal, body)
	fmt.Fprintf(&p.log, "%8.3f  %s %s\n", p.now.Sub(p.start).Seconds(), d.EventType(), summary(d))
	decoded, err := event.Decode(body)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.folded.Apply(decoded); err != nil {
		p.t.Fatalf("fold %s: %v", d.EventType(), err)
	}
	p.agree(p.folded, "the fold of the journal")
	if decoded, err = event.Decode(body); err != nil {
		p.t.Fatal(err)
	}
	if err := p.unasked.Apply(decoded); err != nil {
		p.t.Fatalf("fold %s: %v", d.EventType(), err)
	}
	if !reflect.DeepEqual(p.folded, p.unasked) {
		p.t.Fatalf("a machine that was asked what is due is another than one that was not:\n%s", p.log.String())
	}
	return nil
}

// agree fails unless the other machine is where the live one is.
func (p *play) agree(other *agent.Machine, what string) {
	p.t.Helper()
	other.Recount()
	if diff := cmp.Diff(p.live.State(), other.State()); diff != "" {
		p.t.Fatalf("%s is in another state (-live +fold):\n%s\n%s", what, diff, p.log.String())
	}
	// Arguments leave the answer for the tool_call of the same commit.
	ignore := cmpopts.IgnoreFields(llm.ToolCall{}, "Args", "ArgsText")
	if diff := cmp.Diff(slices.Clone(p.live.Next()), slices.Clone(other.Next()), ignore, cmpopts.EquateEmpty()); diff != "" {
		p.t.Fatalf("%s wants something else (-live +fold):\n%s\n%s", what, diff, p.log.String())
	}
}

// advance performs what is due until only effects are left.
func (p *play) advance() {
	p.t.Helper()
	for steps := 0; ; steps++ {
		if steps > 1000 {
			p.t.Fatalf("the machine does not come to rest:\n%s", p.log.String())
		}
		if !p.step() {
			return
		}
	}
}

func (p *play) step() bool {
	p.t.Helper()
	p.asleep, p.asked, p.pending = nil, nil, nil
	changed := false
	for _, a := range slices.Clone(p.live.Next()) {
		switch a := a.(type) {
		case machine.Record:
			p.apply(a.Data)
			changed = true
		case machine.Resolve:
			p.apply(resolve(a))
			changed = true
		case machine.CallModel:
			if a.NotBefore.After(p.now) {
				p.asleep = &a
				continue
			}
			if said, err := p.live.Conversation(); a.Purpose == "" && (err != nil || !slices.Equal(a.Request.Messages, said)) {
				p.t.Fatalf("the model is sent %d messages of %d (%v)", len(a.Request.Messages), len(said), err)
			}
			p.apply(event.ModelRequested{Attempt: a.Attempt, Model: a.Target, Purpose: a.Purpose, Withheld: a.Withheld})
			p.call = &a
			changed = true
		case machine.RunTool:
			if a.NotBefore.After(p.now) {
				p.pending = append(p.pending, a)
				continue
			}
			p.apply(event.ToolStarted{CallID: a.CallID, Attempt: a.Attempt, Key: a.Key})
			p.runs[a.CallID] = a
			changed = true
		case machine.CheckAnswer:
			p.apply(check(a))
			changed = true
		case machine.RunHook:
			if _, heard := p.hooks[a.ID]; !heard {
				p.hooks[a.ID] = a
				p.note("> hears %s%s", a.ID, shown(a))
			}
		case machine.Ask:
			for _, q := range a.Questions {
				p.asked = append(p.asked, *q)
			}
		}
	}
	if !changed {
		p.noteRest()
	}
	return changed
}

// noteRest says what the run waits for, so that a listing shows it.
func (p *play) noteRest() {
	if p.asleep != nil {
		p.note("> sleeps until %.3f", p.asleep.NotBefore.Sub(p.start).Seconds())
	}
	for _, a := range p.pending {
		p.note("> %s sleeps until %.3f", a.CallID, a.NotBefore.Sub(p.start).Seconds())
	}
	for _, q := range p.asked {
		p.note("> asks about %s", q.ID)
	}
}

// tools the plays know, by what makes them different.
func resolve(a machine.Resolve) event.ToolCall {
	c := a.Call
	d := event.ToolCall{
		CallID: a.CallID, ProviderID: c.ProviderID, Tool: c.Name, Args: c.Args, ArgsText: c.ArgsText,
		Effect: event.EffectAtMostOnce, Digest: "d:" + c.Name + string(c.Args), EditedBy: a.EditedBy,
	}
	var args struct{ Path string }
	_ = json.Unmarshal(c.Args, &args)
	switch c.Name {
	case "read": // says nothing of what it reads
		d.Effect, d.ReadOnly, d.Concurrent = event.EffectPure, true, true
	case "scan": // only reads, and not beside others
		d.Effect, d.ReadOnly = event.EffectPure, true
	case "get": // reads one path
		d.Effect, d.ReadOnly, d.Concurrent = event.EffectPure, true, true
		d.Access = []event.Access{{Key: "file:" + args.Path}}
	case "put": // writes one path
		d.Effect, d.Access = event.EffectIdempotent, []event.Access{{Key: "file:" + args.Path, Write: true}}
	case "edit": // says which file of the workspace it writes
		d.Facts = &event.Facts{Paths: []event.PathUse{{Path: args.Path, Write: true}}, Risk: event.RiskWrite, Confined: true}
	case "test": // runs a command
		d.Facts = &event.Facts{Commands: []event.Command{{Words: []string{"go", "test", args.Path}}}, Risk: event.RiskUnknown}
	case "peek": // reads one path, and is not declared to be harmless
		d.Access = []event.Access{{Key: "file:" + args.Path}}
	case "pay": // has an irreversible effect of the given kind
		d.Effect, d.Facts = event.EffectIdempotent, &event.Facts{Risk: event.Risk(args.Path)}
	case "search": // sends its question, and reads
		d.Effect, d.ReadOnly, d.Facts = event.EffectIdempotent, true, &event.Facts{Risk: event.RiskSend}
	case "poll": // is meant to be called again and again
		d.Effect, d.Polling = event.EffectPure, true
	case "send", "done": // says nothing at all
	case "shell": // touches everything
		d.Access = []event.Access{{Key: "*", Write: true}}
	case "fetch": // brings in text of another author
		d.Effect, d.ReadOnly, d.Concurrent, d.Labels = event.EffectIdempotent, true, true, event.Labels{Untrusted: true, Outgoing: true}
	case "look": // reads what is the owner's
		d.Effect, d.ReadOnly, d.Concurrent, d.Labels = event.EffectPure, true, true, event.Labels{Private: true}
	case "hire": // is an agent of its own
		d.Agent, d.Concurrent = true, true
	case "mail": // sends
		d.Labels = event.Labels{Outgoing: true}
	case "run": // reads and sends
		d.Labels = event.Labels{Private: true, Outgoing: true}
	default:
		d.Problem = &event.Problem{Type: event.ErrorUnknownTool, Message: "there is no tool " + c.Name}
	}
	if d.Problem == nil && (len(c.Args) == 0 || bytes.Contains(c.Args, []byte(`"bad"`))) {
		d.Problem = &event.Problem{Type: event.ErrorInvalidArgs, Message: "the arguments do not fit"}
	}
	return d
}

// check finds an answer valid that is an object.
func check(a machine.CheckAnswer) event.AnswerChecked {
	d := event.AnswerChecked{Cycle: a.Cycle}
	if !strings.HasPrefix(a.Answer, "{") || !json.Valid([]byte(a.Answer)) {
		d.Problem = "not an object"
	}
	return d
}

// asks is an answer with calls, each "tool path", or "tool !fragment" for
// arguments that are no JSON.
func asks(text string, calls ...string) llm.Response {
	r := llm.Response{Finish: llm.FinishTool, Usage: llm.Usage{Input: 2, Output: 1}}
	if text != "" {
		r.Parts = append(r.Parts, llm.Text{Text: text})
	}
	for i, c := range calls {
		name, path, _ := strings.Cut(c, " ")
		call := llm.ToolCall{ProviderID: fmt.Sprintf("p%d", i), Name: name, Args: json.RawMessage(`{"path":"` + path + `"}`)}
		if fragment, ok := strings.CutPrefix(path, "!"); ok {
			call.Args, call.ArgsText = nil, fragment
		}
		r.Parts = append(r.Parts, call)
	}
	if len(calls) == 0 {
		r.Finish = llm.FinishEnd
	}
	return r
}

// says is an answer without calls.
func says(text string) llm.Response { return asks(text) }

// used is an answer that took that many tokens.
func used(input, output int64, r llm.Response) llm.Response {
	r.Usage = llm.Usage{Input: input, Output: output}
	return r
}

func finish(f llm.Finish, r llm.Response) llm.Response { r.Finish = f; return r }

// answer settles the model call.
func (p *play) answer(r llm.Response) {
	p.t.Helper()
	p.respond(r)
	p.advance()
}

func (p *play) respond(r llm.Response) {
	p.t.Helper()
	if p.call == nil {
		p.t.Fatalf("no model call is in flight:\n%s", p.log.String())
	}
	c := p.call
	p.call = nil
	d := event.ModelResponse{
		Cycle: c.Cycle, Attempt: c.Attempt, Purpose: c.Purpose, TextLength: len(r.Parts.Text()), ToolCalls: []event.CallRef{},
		FinishReason: r.Finish, RawFinish: r.RawFinish, FinishDetail: r.FinishDetail,
		Usage: r.Usage, Model: c.Target, Parts: event.Answer(r.Parts),
	}
	if c.Price != nil {
		d.Cost = llm.Cost{USD: c.Price.Of(r.Usage), Priced: true}
	}
	for i, part := range d.Parts {
		if call, ok := part.(llm.ToolCall); ok {
			call.CallID = fmt.Sprintf("c%d.%d", c.Cycle, len(d.ToolCalls)+1)
			d.Parts[i] = call
			d.ToolCalls = append(d.ToolCalls, event.CallRef{CallID: call.CallID, Tool: call.Name})
		}
	}
	p.apply(d)
}

// breaks settles the model call as failed.
func (p *play) breaks(class llm.Class, change ...func(*event.ModelAttemptFailed)) {
	p.t.Helper()
	if p.call == nil {
		p.t.Fatalf("no model call is in flight:\n%s", p.log.String())
	}
	c := p.call
	p.call = nil
	d := event.ModelAttemptFailed{Attempt: c.Attempt, Model: c.Target, Purpose: c.Purpose, Class: class, Message: "it broke", Cost: llm.Cost{Priced: c.Price != nil}}
	for _, f := range change {
		f(&d)
	}
	p.apply(d)
	p.advance()
}

func retryAfter(d time.Duration) func(*event.ModelAttemptFailed) {
	return func(f *event.ModelAttemptFailed) { f.RetryAfterMs = new(d.Milliseconds()) }
}

// results settles tool calls that run, as "c1.1=output".
func (p *play) results(outputs ...string) {
	p.t.Helper()
	for _, o := range outputs {
		id, output, _ := strings.Cut(o, "=")
		p.result(id, event.ToolResult{Output: output})
	}
}

func (p *play) result(id string, d event.ToolResult) {
	p.t.Helper()
	run, ok := p.runs[id]
	if !ok {
		p.t.Fatalf("%s does not run:\n%s", id, p.log.String())
	}
	delete(p.runs, id)
	d.CallID, d.Tool = id, run.Tool
	d.Untrusted, d.Private = d.Untrusted || run.Labels.Untrusted, d.Private || run.Labels.Private
	p.apply(d)
	p.advance()
}

// command applies what comes from outside.
func (p *play) command(d event.Data) {
	p.t.Helper()
	p.apply(d)
	p.advance()
}

func (p *play) decide(id string, kind event.ApprovalKind, reason string) {
	p.t.Helper()
	for _, pending := range p.live.State().Pending {
		if pending.ID == id {
			p.command(event.ToolApprovalResolved{
				CallID: id, Kind: kind, Digest: pending.Digest, Policy: pending.Policy, Approver: "ann", Reason: reason, At: p.now,
			})
			return
		}
	}
	p.t.Fatalf("%s waits for no decision:\n%s", id, p.log.String())
}

// stop settles everything in flight as stopped, as a stopped driver does; what runs on
// is cancelled, or parked afterwards.
func (p *play) stop() {
	p.t.Helper()
	if p.call != nil {
		p.breaks(llm.ClassInterrupted)
	}
	for _, id := range p.running() {
		p.result(id, event.ToolResult{IsError: true, ErrorType: event.ErrorCancelled, Output: "stopped"})
	}
}

func (p *play) cancel() {
	p.t.Helper()
	p.command(event.CancelRequested{By: "ann", Reason: "enough"})
	p.stop()
}

// crash forgets what was in flight; resume is what the next process does.
func (p *play) crash() {
	p.note("< crash")
	p.call, p.runs, p.hooks = nil, map[string]machine.RunTool{}, map[string]machine.RunHook{}
}

func (p *play) resume() {
	p.t.Helper()
	p.command(event.RunResumed{Owner: "other"})
}

func (p *play) after(d time.Duration) {
	p.t.Helper()
	p.now = p.now.Add(d)
	p.advance()
}

func (p *play) running() []string {
	var ids []string
	for id := range p.runs {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func (p *play) outcome() event.Outcome {
	p.t.Helper()
	o := p.live.State().Outcome
	if o == nil {
		p.t.Fatalf("the run has not ended:\n%s", p.log.String())
	}
	return *o
}

// summary is an event's payload without what every scenario has alike.
func summary(d event.Data) string {
	if _, ok := d.(event.RunStarted); ok {
		return ""
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(d); err != nil {
		return err.Error()
	}
	var v map[string]any
	if err := json.Unmarshal(b.Bytes(), &v); err != nil {
		return err.Error()
	}
	drop := []string{"policy", "usage", "cost", "digest", "parts", "key", "at", "maxCycles", "rule", "model", "tool", "attempt", "access", "textLength", "toolCalls", "by", "owner", "approver"}
	switch d := d.(type) {
	case event.RunCompleted:
		v = v["outcome"].(map[string]any)
		drop = nil
	case event.ModelRequested:
		drop = []string{"requestDigest"}
	case event.ModelResponse:
		v["text"] = llm.Parts(d.Parts).Text()
	case event.ToolCall:
		drop = []string{"providerId", "digest", "access", "readOnly", "concurrent", "effect"}
	case event.ToolStarted, event.ToolResult, event.ModelAttemptFailed:
		drop = slices.DeleteFunc(drop, func(s string) bool { return s == "attempt" })
	}
	for _, k := range drop {
		delete(v, k)
	}
	b.Reset()
	if err := enc.Encode(v); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(b.String())
}
