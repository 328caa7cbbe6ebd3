package engine_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/hook"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/engine/replay"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

var anyObject = json.RawMessage(`{"type":"object"}`)

func transcript(t *testing.T, m machine.Machine) string {
	t.Helper()
	b, err := json.Marshal(m.(*agent.Machine).Transcript())
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func scribble(args json.RawMessage) {
	for i := range args {
		args[i] = 'X'
	}
}

// A reader of a call's arguments may write into its copy: the call runs as it was
// judged, and the conversation keeps the model's words.
func TestWhatIsWrittenIntoTheArgumentsOfACallIsTheWritersOwn(t *testing.T) {
	const args = `{"task":"look"}`
	var ran string
	work := tool.Tool{Name: "work", Schema: anyObject, Run: func(_ context.Context, c tool.Call) (tool.Result, error) {
		ran = string(c.Args)
		return tool.Result{Output: "worked"}, nil
	}}
	for name, write := range map[string]func(*rig){
		"by the tool": func(r *rig) {
			scribbles := work
			scribbles.Run = func(ctx context.Context, c tool.Call) (tool.Result, error) {
				defer scribble(c.Args)
				return work.Run(ctx, c)
			}
			r.tools(scribbles)
		},
		"by a hook": func(r *rig) {
			r.hooks(hook.Hook{Stage: event.HookBeforeTool, Name: "h", Run: func(_ context.Context, c hook.Call) (hook.Answer, error) {
				scribble(c.Args)
				return hook.Answer{}, nil
			}})
		},
		"by an observing hook": func(r *rig) {
			r.hooks(hook.Hook{Stage: event.HookBeforeTool, Name: "h", Kind: hook.Observer, Run: func(_ context.Context, c hook.Call) (hook.Answer, error) {
				scribble(c.Args)
				return hook.Answer{}, nil
			}})
		},
		"by a hook, into its own answer of before": func(r *rig) {
			answer := json.RawMessage(args)
			r.hooks(
				hook.Hook{Stage: event.HookBeforeTool, Name: "rewrites", Run: answers(hook.Answer{Args: answer})},
				hook.Hook{Stage: event.HookBeforeTool, Name: "scribbles", Run: func(context.Context, hook.Call) (hook.Answer, error) {
					scribble(answer)
					return hook.Answer{}, nil
				}})
		},
		"by who is asked": func(r *rig) {
			r.gate("work").asker(func(_ context.Context, p event.Question) (event.Resolution, error) {
				scribble(p.What.(event.CallAsked).Args)
				return event.Resolution{Kind: event.ApprovalApproved, Approver: "ann"}, nil
			})
		},
		"by who was asked, into their answer": func(r *rig) {
			answer := json.RawMessage(args)
			edited := work
			edited.TimeoutFor = func(json.RawMessage) time.Duration { scribble(answer); return time.Minute }
			r.tools(edited).gate("work").asker(func(context.Context, event.Question) (event.Resolution, error) {
				return event.Resolution{Kind: event.ApprovalEdited, Args: answer, Approver: "ann"}, nil
			})
		},
		"by whoever begins an agent": func(r *rig) {
			r.offers("work", newRig(t, r.store).turns(scripted.Turn{Text: "worked"}))
			offered := r.env.Children["work"]
			begin := offered.Begin
			offered.Begin = func(a json.RawMessage) (event.RunStarted, perform.Env, error) {
				defer scribble(a)
				ran = string(a)
				return begin(a)
			}
			r.env.Children["work"] = offered
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ran = ""
				r := newRig(t)
				if name != "by whoever begins an agent" {
					r.tools(work)
				}
				r.turns(scripted.Turn{ToolCalls: calls("work", args)}, scripted.Turn{Text: "done"})
				write(r)
				run := r.start(t.Context())
				if o := outcome(t, run); !o.OK || ran != args {
					t.Errorf("ran with %q, outcome %+v", ran, o)
				}
				r.whole(run.ID)
				folded, err := r.Inspect(t.Context(), run.ID)
				if err != nil {
					t.Fatal(err)
				}
				if live, again := transcript(t, run.Machine()), transcript(t, folded); live != again {
					t.Errorf("the run had\n%s\nand its journal\n%s", live, again)
				}
			})
		})
	}
}

func TestACallWhoseDeclarationWritesIntoItsArgumentsIsNotRun(t *testing.T) {
	ran := false
	base := tool.Tool{Name: "work", Schema: anyObject, Run: func(context.Context, tool.Call) (tool.Result, error) { ran = true; return tool.Result{}, nil }}
	for name, declare := range map[string]func(*tool.Tool){
		"facts": func(b *tool.Tool) {
			b.Facts = func(args json.RawMessage) event.Facts { scribble(args); return event.Facts{} }
		},
		"label": func(b *tool.Tool) { b.Describe = func(args json.RawMessage) string { scribble(args); return "work" } },
		"resources": func(b *tool.Tool) {
			b.Access = func(args json.RawMessage) []event.Access { scribble(args); return nil }
		},
		"check": func(b *tool.Tool) { b.Check = func(args json.RawMessage) error { scribble(args); return nil } },
		"labels": func(b *tool.Tool) {
			b.LabelsFor = func(args json.RawMessage, _ *event.Facts) event.Labels { scribble(args); return event.Labels{} }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bad := base
				declare(&bad)
				r := newRig(t).tools(bad).turns(scripted.Turn{ToolCalls: calls("work", `{"a":1}`)}, scripted.Turn{Text: "done"})
				run := r.start(t.Context())
				if o := outcome(t, run); !o.OK {
					t.Errorf("outcome %+v, error %+v", o, o.Error)
				}
				want := `{"error":"what work declares of this call changed the arguments that it was asked about","type":"tool_error"}`
				if res := results(r.whole(run.ID)); len(res) != 1 || res[0].Output != want || ran {
					t.Errorf("ran: %t, results %+v", ran, res)
				}
			})
		})
	}
}

func TestTheJournalKeepsWhatAModelSentAndWhatRan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran []string
		read := tool.Tool{
			Name:   "read",
			Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"limit":{"type":"integer"}},"required":["path"],"additionalProperties":false}`),
			Run: func(_ context.Context, c tool.Call) (tool.Result, error) {
				ran = append(ran, string(c.Args))
				return tool.Result{Output: "text"}, nil
			},
		}
		sent := []string{`{"path":"a","limit":null}`, `{"path":"b","limit":"5"}`, `{"path":"c","limit":1}`}
		r := newRig(t).tools(read).turns(
			scripted.Turn{ToolCalls: calls("read", sent[0])}, scripted.Turn{ToolCalls: calls("read", sent[1], "read", sent[2])}, scripted.Turn{Text: "done"})
		run := r.start(t.Context())
		if o := outcome(t, run); !o.OK {
			t.Fatalf("outcome %+v", o)
		}
		want := []string{`{"path":"a"}`, `{"limit":5,"path":"b"}`, sent[2]}
		var kept, came []string
		for _, e := range r.whole(run.ID) {
			if c, ok := e.Data.(event.ToolCall); ok {
				kept, came = append(kept, string(c.Args)), append(came, string(c.Sent))
			}
		}
		sent[2] = "" // it came as it ran
		if !slices.Equal(ran, want) || !slices.Equal(kept, want) || !slices.Equal(came, sent) {
			t.Errorf("ran with %q; the journal has %q, sent as %q", ran, kept, came)
		}
		found, err := replay.Run(t.Context(), r.Past(), run.ID, func(string) (llm.Model, string, error) { return scripted.New("none"), "model", nil })
		if err != nil || len(found.Divergences) > 0 {
			t.Errorf("a replay differs: %+v, %v", found, err)
		}
	})
}
