package drive_test

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

// second is a driver that is not the engine: it performs one action after another,
// and commits each event by itself.
type second struct {
	t       *testing.T
	store   journal.Store
	machine machine.Machine
	record  *drive.Recorder
	asks    drive.Requests
	cache   drive.Continuity
	model   llm.Model
	lease   journal.Lease
	last    event.Event
	head    string
}

func (d *second) keep(data event.Data) {
	d.t.Helper()
	e := event.Event{Seq: d.last.Seq + 1, Run: "r", Time: time.Unix(1_800_000_000+d.last.Seq, 0).UTC(), Data: d.record.Blobs.Detach(data), Prev: d.head}
	body, err := d.record.Seal(&e)
	if err == nil {
		err = d.machine.Apply(&e)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	d.record.Blobs.Note(e.Data)
	d.cache.Note(&e)
	d.last, d.head = e, event.Hash(body)
	b := journal.Batch{
		Lease: d.lease, Head: d.head, Time: e.Time, Blobs: d.record.Blobs.Take(slices.Values([]event.Data{e.Data})),
		Records: []journal.Record{{Run: "r", Seq: e.Seq, Type: string(e.Type()), Body: body}}, Status: journal.Progress{State: journal.Running, Cycles: d.machine.State().Cycle},
	}
	if o := d.machine.State().Outcome; o != nil {
		b.Status.State, b.Status.Detail = journal.Ended, string(o.Reason)
		b.Status.Outcome, _ = json.Marshal(o)
	}
	if e.Seq > 1 {
		_, err = d.store.Append(d.t.Context(), b)
	} else {
		started := e.Data.(event.RunStarted)
		b.Lease = journal.Lease{Run: "r", Owner: "second", Expiry: time.Now().Add(time.Hour)}
		d.lease, _, err = d.store.Create(d.t.Context(), journal.Run{ID: "r", Root: "r", Depth: 1, Kind: started.Kind, Created: e.Time}, b)
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *second) perform(a machine.Action) {
	switch a := a.(type) {
	case machine.Record:
		d.keep(a.Data)
	case machine.CallModel:
		req := a.Request
		if err := d.asks.Make(&req, d.model, "model"); err != nil {
			d.t.Fatal(err)
		}
		d.keep(event.ModelRequested{Attempt: a.Attempt, Model: a.Target, Prompt: d.cache.Requested(&a, d.model, &req)})
		r, err := d.model.Generate(d.t.Context(), &req)
		if err != nil {
			d.t.Fatal(err)
		}
		answer := event.ModelResponse{Cycle: a.Cycle, Attempt: a.Attempt, Model: a.Target, FinishReason: r.Finish, Usage: r.Usage, Parts: event.Answer(r.Parts)}
		for i, p := range r.Parts {
			if c, ok := p.(llm.ToolCall); ok {
				c.CallID = "r-1-1"
				answer.Parts[i], answer.ToolCalls = c, append(answer.ToolCalls, event.CallRef{CallID: c.CallID, Tool: c.Name})
			}
		}
		d.keep(answer)
	case machine.Resolve:
		d.keep(event.ToolCall{CallID: a.CallID, Tool: a.Call.Name, Args: a.Call.Args, Digest: journal.Digest(a.Call.Args)})
	case machine.RunTool:
		d.keep(event.ToolStarted{CallID: a.CallID, Attempt: a.Attempt, Key: a.Key})
		x := d.record.Excerpt(d.record.Secrets.Text(long), a.MaxResultChars, false)
		d.keep(event.ToolResult{CallID: a.CallID, Tool: a.Tool, Output: x.Text, Blob: x.Blob, Truncated: x.Blob != ""})
	default:
		d.t.Fatalf("the machine asks for %T", a)
	}
}

const password = "open-sesame-42"

// long is an output that is cut, with a secret in what is left out.
var long = strings.Repeat("line\n", 20_000) + password + strings.Repeat("\nline", 20_000)

// What the engine does for the events of its runs another driver has as well: the
// runs of both verify, can be replayed, and hold no secret.
func TestASecondDriverKeepsRunsAsTheEngineDoes(t *testing.T) {
	set, err := tool.NewSet(tool.New("work", "Works.", func(context.Context, struct{}) (string, error) { return "", nil }))
	if err != nil {
		t.Fatal(err)
	}
	cfg := agent.Config{Targets: []agent.Target{{Model: "test/model", Price: &llm.Price{}}}, Tools: set.Defs()}
	cfg.Policy.Declared = true
	started, err := agent.Start(cfg.WithDefaults(), llm.UserText("the password is "+password))
	if err != nil {
		t.Fatal(err)
	}
	m, err := versions.Make(started.Machine)
	if err != nil {
		t.Fatal(err)
	}
	store := memory.New(nil)
	d := &second{t: t, store: store, machine: m, record: drive.NewRecorder(store), model: scripted.New("test",
		scripted.Turn{ToolCalls: []scripted.Call{{Name: "work", Arguments: json.RawMessage(`{}`)}}}, scripted.Turn{Text: "it is " + password})}
	d.record.Equip(set, secret.NewRedactor(secret.Secret{Name: "DOOR", Value: password}))
	first, err := d.record.Blobs.Begin(t.Context(), started)
	if err != nil {
		t.Fatal(err)
	}
	d.keep(first)
	for m.State().Outcome == nil {
		due := m.Next()
		if len(due) == 0 {
			t.Fatal("nothing is due")
		}
		d.perform(due[0])
	}
	if out := m.State().Outcome.FinalOutput; out != "it is ${secret:DOOR}" {
		t.Errorf("it ends with %q", out)
	}
	if _, err := journal.Verify(t.Context(), store, "r", ""); err != nil {
		t.Error(err)
	}
	holdsNoSecret(t, store)
	calls, err := drive.Past{Store: store, Machines: versions.Make}.Recording(t.Context(), "r")
	if err != nil || len(calls) != 2 || calls[1].Request == nil || calls[1].Response.Parts.Text() != "it is ${secret:DOOR}" {
		t.Errorf("it is recorded as %+v, %v", calls, err)
	}
}

// holdsNoSecret looks through all that a run has stored, which has one output that
// was cut.
func holdsNoSecret(t *testing.T, store journal.Store) {
	t.Helper()
	records, err := store.Records(t.Context(), "r", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	kept := 0
	for r := range slices.Values(records) {
		if strings.Contains(string(r.Body), password) {
			t.Errorf("event %d holds the secret", r.Seq)
		}
		e, err := event.Decode(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		for ref := range refs(e.Data) {
			whole, err := store.Blob(t.Context(), ref)
			if err != nil || string(whole) != strings.Replace(long, password, "${secret:DOOR}", 1) {
				t.Errorf("what was cut is kept as %d bytes, %v", len(whole), err)
			}
			kept++
		}
	}
	if kept != 1 {
		t.Errorf("%d outputs are kept", kept)
	}
}

func refs(data event.Data) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, r := range event.Blobs(data) {
			if !yield(r.Digest) {
				return
			}
		}
	}
}
