package agent_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/llm"
)

// breakOff ends the run as a driver does whose machine, or whose tools, broke.
func (p *play) breakOff() {
	p.t.Helper()
	p.apply(event.RunTerminatedBy{Reason: event.ReasonInternal})
	p.apply(event.RunCompleted{Outcome: event.Outcome{Reason: event.ReasonInternal}})
}

// A run that ended amid a cycle can be continued: each call of the conversation
// has one result, and none that says more than is known.
func TestTheConversationOfARunThatBrokeAmidItsCallsIsWhole(t *testing.T) {
	answer := asks("", "send a", "send b")
	neverRan := event.ToolResult{IsError: true, ErrorType: event.ErrorCancelled, Output: `{"error":"never ran"}`}
	ran, inDoubt := `{"error":"the run ended before this call ran","type":"cancelled"}`,
		`{"error":"the run ended while this call was running, so it is not known whether it took effect","type":"in_doubt"}`
	for name, tt := range map[string]struct {
		cfg  agent.Config
		play func(p *play)
		want []string
	}{
		"before anything is known of them": {play: func(p *play) { p.respond(answer) }, want: []string{ran, ran}},
		"of which the driver said so": {play: func(p *play) {
			p.respond(answer)
			for _, id := range []string{"c1.1", "c1.2"} {
				d := neverRan
				d.CallID, d.Tool = id, "send"
				p.apply(d)
			}
		}, want: []string{neverRan.Output, neverRan.Output}},
		"while one ran":   {play: func(p *play) { p.answer(answer) }, want: []string{inDoubt, ran}},
		"with one result": {play: func(p *play) { p.answer(answer); p.results("c1.1=A") }, want: []string{"A", inDoubt}},
		"before a gate had seen the result": {
			cfg: hooked(agent.Hook{Stage: event.HookAfterTool, Name: "log", Observer: true}, agent.Hook{Stage: event.HookAfterTool, Name: "redact"}),
			play: func(p *play) {
				p.answer(answer)
				p.results("c1.1=the key is 1234")
			},
			want: []string{`{"error":"the hook redact withheld what this call gave; the call itself has run, because it failed and a gate that fails is closed: ` +
				`the run ended before this hook was heard","type":"hook_failed"}`, ran},
		},
		"while a person's arguments were looked at": {
			cfg: agent.Config{Policy: gated("send")},
			play: func(p *play) {
				p.answer(asks("", "send a"))
				pending := p.asked[0]
				p.apply(event.ToolApprovalResolved{
					CallID: pending.ID, Kind: event.ApprovalEdited, Digest: pending.Digest, Policy: pending.Policy,
					Approver: "ann", Args: []byte(`{"path":"c"}`), At: p.now,
				})
			},
			want: []string{ran},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, tt.cfg)
			tt.play(p)
			p.breakOff()
			for who, m := range map[string]*agent.Machine{"the run": p.live, "its fold": p.folded} {
				messages, err := m.Conversation()
				if err != nil {
					t.Fatalf("%s: %v\n%s", who, err, p.log.String())
				}
				var got []string
				for _, part := range messages[len(messages)-1].Parts {
					got = append(got, part.(llm.ToolResult).Output)
				}
				if fmt.Sprint(got) != fmt.Sprint(tt.want) {
					t.Errorf("%s tells %v, want %v", who, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
				}
				for _, call := range messages[len(messages)-2].Parts.ToolCalls() {
					if len(call.Args) == 0 {
						t.Errorf("%s: %s has no arguments", who, call.CallID)
					}
				}
			}
			next, err := agent.Start(config(tt.cfg), llm.UserText("go on"))
			if err != nil {
				t.Fatal(err)
			}
			conversation, _ := p.folded.Conversation()
			next.From = &event.ContinuedFrom{Run: "r", Seq: p.seq, History: conversation}
			if err := emptyPlay(t).try(next); err != nil {
				t.Error(err)
			}
		})
	}
}
