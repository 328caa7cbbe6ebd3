package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/engine/replay"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

const portSchema = `{"type":"object","required":["port"],"properties":{"port":{"type":"integer","title":"Port"},"note":{"type":"string"}}}`

// asking is a tool that needs a port before it works, and how its attempts went.
func asking() (tool.Tool, *[]string) {
	var made []string
	return tool.Tool{
		Name: "work", Description: "Works.", Schema: json.RawMessage(`{"type":"object"}`),
		Run: func(_ context.Context, c tool.Call) (tool.Result, error) {
			got := "nothing"
			if c.Input != nil {
				got = fmt.Sprintf("%s %s %s %s", c.Input.Kind, c.Input.Input, c.Input.Reason, c.Input.State)
			}
			made = append(made, fmt.Sprintf("%d %s: %s", c.Attempt, c.Key, got))
			if c.Input == nil {
				return tool.Result{}, &tool.InputRequired{Form: event.Form{
					Message: "Which port?", Schema: json.RawMessage(portSchema), State: json.RawMessage(`{"round":1}`),
				}}
			}
			return tool.Result{Output: "done with " + got}, nil
		},
	}, &made
}

func formRig(t *testing.T, stores ...journal.Store) (*rig, *[]string) {
	work, made := asking()
	return newRig(t, stores...).tools(work).turns(scripted.Turn{ToolCalls: calls("work", "{}")}, scripted.Turn{Text: "done"}), made
}

// A call that needs input waits in the journal for a month, and another process makes a
// second attempt at it with the same key and the answer.
func TestFormIsAnsweredNextMonthInAnotherProcess(t *testing.T) {
	for name, gated := range map[string]bool{"an open call": false, "a call that was approved": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, made := formRig(t)
				r.cfg.Limits.MaxWallSeconds = 60
				if gated {
					r.gate("work")
				}
				run := r.start(t.Context())
				parkedAs(t, run, event.ParkApproval)
				id := run.ID + "-1-1"
				if gated {
					r.send(journal.Command{Run: run.ID, Kind: journal.Approve, CallID: id, By: "ann"})
					parkedAs(t, r.resume(run.ID), event.ParkApproval)
				}
				time.Sleep(31 * 24 * time.Hour)
				other := r.other()
				c := control.New(other.store, other.Engine)
				pending, err := c.Pending(t.Context(), run.ID)
				if err != nil || len(pending) != 1 || pending[0].Kind != event.QuestionForm || pending[0].Reason != "Which port?" {
					t.Fatalf("these questions are open: %+v (%v)", pending, err)
				}
				if shown, _ := json.Marshal(pending[0]); !strings.Contains(string(shown), `"title":"Port"`) || strings.Contains(string(shown), "round") {
					t.Errorf("the question is shown as %s", shown)
				}
				for _, wrong := range []string{"", `{"port":"http"}`, `{}`, `[]`} {
					err := other.Send(t.Context(), journal.Command{Run: run.ID, Kind: journal.Approve, CallID: id, By: "ann", Args: json.RawMessage(wrong)})
					if err == nil || wrong == `{"port":"http"}` && !strings.Contains(err.Error(), "port: must be integer, not string") {
						t.Errorf("the answer %q is taken: %v", wrong, err)
					}
				}
				other.send(journal.Command{Run: run.ID, Kind: journal.Approve, CallID: id, By: "ann", Args: json.RawMessage(`{"port":8080}`)})
				if o := outcome(t, other.resume(run.ID)); !o.OK {
					t.Errorf("outcome %+v", o)
				}
				key := run.ID + ":" + id
				want := []string{"1 " + key + ": nothing", "2 " + key + `: answered {"port":8080}  {"round":1}`}
				if !slices.Equal(*made, want) {
					t.Errorf("the attempts were %q, want %q", *made, want)
				}
				events := r.whole(run.ID)
				if got := results(events); len(got) != 1 || got[0].IsError || count(events, "tool.input_resolved") != 1 {
					t.Errorf("the results are %+v", got)
				}
			})
		})
	}
}

// A mode that decides every question declines a form, because it cannot invent input.
func TestFormIsDeclinedByWhatAnswersEveryQuestion(t *testing.T) {
	for _, mode := range []agent.ApproveMode{agent.ApproveAll, agent.ApproveDeny} {
		t.Run(string(mode), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, made := formRig(t)
				r.cfg.Approve = mode
				if o := outcome(t, r.start(t.Context())); !o.OK || len(*made) != 2 || !strings.Contains((*made)[1], "rejected  declined by the run's setting --approve") {
					t.Errorf("outcome %+v after %q", o, *made)
				}
			})
		})
	}
}

// A bypass lets calls run; it says nothing about input.
func TestFormWaitsForAPersonWhereApprovalsAreBypassed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, made := formRig(t)
		r.cfg.Approve = agent.ApproveBypass
		parkedAs(t, r.start(t.Context()), event.ParkApproval)
		if len(*made) != 1 {
			t.Errorf("the attempts were %q", *made)
		}
	})
}

// A person at the terminal answers at once. An answer that does not fit the form is
// none.
func TestFormIsAnsweredByThePersonWhoIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, made := formRig(t)
		r.asker(func(_ context.Context, q event.Question) (event.Resolution, error) {
			return event.Resolution{Kind: event.ApprovalAnswered, Approver: "ann", Args: json.RawMessage(`{"port":1}`)}, nil
		})
		if o := outcome(t, r.start(t.Context())); !o.OK || len(*made) != 2 {
			t.Errorf("outcome %+v after %q", o, *made)
		}
		r, made = formRig(t)
		r.asker(func(_ context.Context, q event.Question) (event.Resolution, error) {
			return event.Resolution{Kind: event.ApprovalAnswered, Approver: "ann", Args: json.RawMessage(`{"port":"x"}`)}, nil
		})
		parkedAs(t, r.start(t.Context()), event.ParkApproval)
		if len(*made) != 1 {
			t.Errorf("the attempts were %q", *made)
		}
	})
}

func TestFormExpires(t *testing.T) {
	for end, ok := range map[event.OnExpiry]bool{event.ExpiryRejects: true, event.ExpiryStops: false} {
		t.Run(string(end), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, made := formRig(t)
				r.cfg.Approvals = agent.Approvals{Seconds: 60, OnTimeout: end}
				run := r.start(t.Context())
				parkedAs(t, run, event.ParkApproval)
				time.Sleep(time.Hour)
				if o := outcome(t, r.resume(run.ID)); o.OK != ok || len(*made) != 1 {
					t.Errorf("outcome %+v after %q", o, *made)
				}
				if got := results(r.whole(run.ID)); got[0].ErrorType != event.ErrorExpired {
					t.Errorf("the result is %+v", got[0])
				}
			})
		})
	}
}

// The second attempt is as much in doubt as any if its process dies; the answer is not
// lost before.
func TestFormSurvivesTheDeathOfItsProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		store := &watched{Store: memory.New(nil), onAppend: func(b journal.Batch) error {
			if holds(b, "tool_result") {
				if n++; n == 1 {
					return journal.ErrFull
				}
			}
			return nil
		}}
		r, made := formRig(t, store)
		run := r.start(t.Context())
		parkedAs(t, run, event.ParkApproval)
		r.send(journal.Command{Run: run.ID, Kind: journal.Approve, CallID: run.ID + "-1-1", By: "ann", Args: json.RawMessage(`{"port":1}`)})
		if _, err := r.resume(run.ID).Wait(t.Context()); err == nil {
			t.Fatal("the process did not die")
		}
		if o := outcome(t, r.other().resume(run.ID)); !o.OK || len(*made) != 2 {
			t.Errorf("outcome %+v after %q", o, *made)
		}
		if got := results(r.whole(run.ID)); got[0].ErrorType != event.ErrorInDoubt {
			t.Errorf("the result is %+v", got[0])
		}
	})
}

// A tool that asks again and again does not go on for ever.
func TestCallThatAsksWithoutEndFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		r := newRig(t).tools(tool.Tool{
			Name: "work", Description: "Works.", Schema: json.RawMessage(`{"type":"object"}`),
			Run: func(context.Context, tool.Call) (tool.Result, error) {
				n++
				return tool.Result{}, &tool.InputRequired{Form: event.Form{Message: fmt.Sprint(n), Schema: json.RawMessage(portSchema)}}
			},
		}).turns(scripted.Turn{ToolCalls: calls("work", "{}")}, scripted.Turn{Text: "done"})
		r.cfg.Approve = agent.ApproveAll
		run := r.start(t.Context())
		if o := outcome(t, run); !o.OK || n != 21 {
			t.Errorf("outcome %+v after %d attempts", o, n)
		}
	})
}

// A form that cannot be asked fails its call.
func TestUnfitFormFailsTheCall(t *testing.T) {
	for name, f := range map[string]event.Form{
		"no schema":           {Message: "?"},
		"no object":           {Message: "?", Schema: json.RawMessage(`{"type":"string"}`)},
		"no schema at all":    {Message: "?", Schema: json.RawMessage(`{"type":"object","properties":1}`)},
		"a URL of no page":    {Message: "?", URL: "file:///etc/passwd"},
		"a state of no JSON":  {Message: "?", URL: "https://example.com", State: json.RawMessage(`{`)},
		"a schema and a page": {Message: "?", URL: "https://example.com", Schema: json.RawMessage(portSchema)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t).tools(tool.Tool{
					Name: "work", Description: "Works.", Schema: json.RawMessage(`{"type":"object"}`),
					Run: func(context.Context, tool.Call) (tool.Result, error) {
						return tool.Result{}, &tool.InputRequired{Form: f}
					},
				}).turns(scripted.Turn{ToolCalls: calls("work", "{}")}, scripted.Turn{Text: "done"})
				run := r.start(t.Context())
				outcome(t, run)
				if got := results(r.whole(run.ID)); !got[0].IsError || !strings.Contains(got[0].Output, "cannot be asked") {
					t.Errorf("the result is %+v", got[0])
				}
			})
		})
	}
}

// A cancel ends the wait for input.
func TestFormOfACancelledRunIsNotAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, made := formRig(t)
		r.cfg.Approve = agent.ApproveWait
		run := r.start(t.Context())
		synctest.Wait()
		r.send(journal.Command{Run: run.ID, Kind: journal.Cancel, By: "ann"})
		if o := outcome(t, run); o.Status != event.StatusCancelled || len(*made) != 1 {
			t.Errorf("outcome %+v after %q", o, *made)
		}
		if got := results(r.whole(run.ID)); got[0].ErrorType != event.ErrorCancelled {
			t.Errorf("the result is %+v", got[0])
		}
	})
}

// A replay finds nothing that differs: the answer is part of what it replays.
func TestRunWithAFormReplays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := formRig(t)
		r.asker(func(context.Context, event.Question) (event.Resolution, error) {
			return event.Resolution{Kind: event.ApprovalAnswered, Approver: "ann", Args: json.RawMessage(`{"port":1}`)}, nil
		})
		run := r.start(t.Context())
		outcome(t, run)
		found, err := replay.Run(t.Context(), r.Past(), run.ID, func(string) (llm.Model, string, error) { return scripted.New("none"), "model", nil })
		if err != nil || len(found.Divergences) > 0 {
			t.Errorf("it differs: %+v (%v)", found, err)
		}
	})
}

// liveRig is a run with a call that asks a person while it is under way.
func liveRig(t *testing.T) (*rig, *[]string) {
	var made []string
	return newRig(t).tools(tool.Tool{
		Name: "work", Description: "Works.", Schema: json.RawMessage(`{"type":"object"}`),
		Run: func(ctx context.Context, c tool.Call) (tool.Result, error) {
			made = append(made, fmt.Sprint(c.Attempt))
			if c.Input != nil {
				return tool.Result{Output: "later " + string(c.Input.Input)}, nil
			}
			a, err := c.Run.Ask(ctx, event.Form{Message: "Which port?", Schema: json.RawMessage(portSchema)})
			return tool.Result{Output: fmt.Sprintf("at once %s %s", a.Kind, a.Input)}, err
		},
	}).turns(scripted.Turn{ToolCalls: calls("work", "{}")}, scripted.Turn{Text: "done"}), &made
}

// A person who is there answers while the call is under way, so that it is made once. The
// journal has the question and the answer.
func TestPersonWhoIsThereAnswersACallUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, made := liveRig(t)
		r.asker(func(context.Context, event.Question) (event.Resolution, error) {
			return event.Resolution{Kind: event.ApprovalAnswered, Approver: "ann", Args: json.RawMessage(`{"port":1}`)}, nil
		})
		run := r.start(t.Context())
		if o := outcome(t, run); !o.OK || len(*made) != 1 {
			t.Errorf("outcome %+v after %q", o, *made)
		}
		events := r.whole(run.ID)
		if got := results(events); got[0].Output != `at once answered {"port":1}` || count(events, "tool.input_required") != 1 || count(events, "tool.input_resolved") != 1 {
			t.Errorf("the result is %+v among %q", got[0], names(events))
		}
		found, err := replay.Run(t.Context(), r.Past(), run.ID, func(string) (llm.Model, string, error) { return scripted.New("none"), "model", nil })
		if err != nil || len(found.Divergences) > 0 {
			t.Errorf("it differs: %+v (%v)", found, err)
		}
	})
}

// Without a person, or after the person has left, the question stays open for later.
func TestQuestionOfACallUnderWayWaitsForLater(t *testing.T) {
	for name, ask := range map[string]asker{"no person is there": nil, "the person leaves": silent} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, made := liveRig(t)
				if ask != nil {
					r.asker(ask)
				}
				run := r.start(t.Context())
				if ask != nil {
					synctest.Wait()
					run.Interrupt()
				}
				if s, err := run.Wait(t.Context()); err != nil || s.Parked == nil {
					t.Fatalf("it is %+v, %v", s, err)
				}
				other := r.other()
				other.env.Ask = nil
				other.send(journal.Command{Run: run.ID, Kind: journal.Approve, CallID: run.ID + "-1-1", By: "ann", Args: json.RawMessage(`{"port":2}`)})
				if o := outcome(t, other.resume(run.ID)); !o.OK || len(*made) != 2 {
					t.Errorf("outcome %+v after %q", o, *made)
				}
				if got := results(r.whole(run.ID)); got[0].Output != `later {"port":2}` {
					t.Errorf("the result is %+v", got[0])
				}
			})
		})
	}
}
