package view_test

import (
	"slices"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/view"
)

// Reads, calls that did not start, and calls before the given event do not count.
func TestEffectsAreWhatChangedSomethingOutside(t *testing.T) {
	var s view.Effects
	seq := int64(0)
	add := func(d event.Data, counts bool) {
		seq++
		s.Add(&event.Event{Run: "r", Seq: seq, Pos: seq, Data: d}, counts)
	}
	started := func(id string) event.ToolStarted { return event.ToolStarted{CallID: id, Attempt: 1} }
	writes := func(path string) *event.Facts {
		return &event.Facts{Risk: event.RiskWrite, Paths: []event.PathUse{{Path: path, Write: true}, {Path: "read.txt"}}}
	}
	for id, call := range map[string]event.ToolCall{
		"before": {Tool: "fs.write", Facts: writes("before.txt")}, "denied": {Tool: "fs.write", Facts: writes("denied.txt")},
		"reads": {Tool: "fs.read", ReadOnly: true}, "pure": {Tool: "now", Effect: event.EffectPure}, "agent": {Tool: "helper", Agent: true, Labels: event.Labels{Outgoing: true}},
		"lists": {Tool: "shell.exec", Facts: &event.Facts{Risk: event.RiskRead, Commands: []event.Command{{}}}},
	} {
		call.CallID = id
		add(call, id != "before")
		if id != "denied" {
			add(started(id), id != "before")
			add(event.ToolResult{CallID: id}, true)
		}
	}
	if len(s.Items) > 0 {
		t.Errorf("nothing was changed, and there are %+v", s.Items)
	}
	five := 5
	for _, d := range []event.Data{
		event.ToolCall{CallID: "w", Tool: "fs.write", Describe: "fs.write a.txt", Facts: writes("a.txt")}, started("w"), event.ToolStarted{CallID: "w", Attempt: 2},
		event.ToolResult{CallID: "w", Changed: []event.Change{{Path: ".git/hooks/x"}, {Path: ".git/config", Undone: true}}},
		event.ToolCall{CallID: "f", Tool: "web.fetch", ReadOnly: true, Labels: event.Labels{Outgoing: true}, Facts: &event.Facts{Risk: event.RiskRead, Hosts: []string{"a.example"}}}, started("f"),
		event.ToolResult{CallID: "f", IsError: true, Reached: []event.Reach{{Host: "b.example"}, {Host: "c.example", Denied: "no"}}},
		event.ToolCall{CallID: "m", Tool: "mail.send"}, started("m"), event.ToolResult{CallID: "m", IsError: true, ErrorType: event.ErrorInDoubt},
		event.CommandStarted{ID: "c", Argv: []string{"make", "test"}, Attempt: 1, Step: "test"}, event.CommandFinished{ID: "c", ExitCode: &five},
	} {
		add(d, true)
	}
	want := []view.Effect{
		{CallID: "w", Kind: view.EffectFiles, Name: "fs.write a.txt", Files: []string{"a.txt", ".git/hooks/x"}, State: view.Done},
		{CallID: "f", Kind: view.EffectSent, Name: "web.fetch ", Hosts: []string{"a.example", "b.example"}, State: view.Failed},
		{CallID: "m", Kind: view.EffectCall, Name: "mail.send ", State: view.Running},
		{Step: "test", Kind: view.EffectCommand, Name: "make test", State: view.Failed},
	}
	same := func(a, b view.Effect) bool {
		return a.CallID == b.CallID && a.Step == b.Step && a.Kind == b.Kind && a.State == b.State && slices.Equal(a.Files, b.Files) && slices.Equal(a.Hosts, b.Hosts)
	}
	if !slices.EqualFunc(s.Items, want, same) {
		t.Errorf("the effects are %+v, want %+v", s.Items, want)
	}
}
