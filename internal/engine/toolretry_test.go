package engine_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/replay"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

// attempts are the attempts at the run's calls, as "tool attempt key".
func attempts(events []event.Event) []string {
	var out []string
	for _, e := range events {
		if d, ok := e.Data.(event.ToolStarted); ok {
			out = append(out, fmt.Sprint(d.CallID, " ", d.Attempt, " ", d.Key))
		}
	}
	return out
}

// network answers HTTP requests.
type network func(*http.Request) (*http.Response, error)

func (n network) RoundTrip(r *http.Request) (*http.Response, error) { return n(r) }

// fetching is a tool that reads from a server that does not answer the first
// request, and whose network gives up before the tool does.
func fetching(effect event.Effect, readOnly bool) (tool.Tool, *int32) {
	requests := new(int32)
	client := &http.Client{Timeout: 50 * time.Millisecond, Transport: network(func(r *http.Request) (*http.Response, error) {
		if *requests++; *requests == 1 {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		return &http.Response{Status: "200 OK", StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
	})}
	fetch := toolFunc("fetch", func(context.Context) (string, error) {
		resp, err := client.Get("http://example.com/page")
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		return resp.Status, nil
	})
	fetch.Effect, fetch.ReadOnly = effect, readOnly
	return fetch, requests
}

// rows: HAR-53, HAR-54, HAR-60
func TestNetworkTimeoutIsRetriedOnlyForHarmlessTools(t *testing.T) {
	type declared struct {
		effect   event.Effect
		readOnly bool
	}
	for d, want := range map[declared]int32{
		{event.EffectPure, false}: 2, {event.EffectIdempotent, false}: 2, {event.EffectReconcilable, false}: 1, {event.EffectAtMostOnce, false}: 1,
		{"", false}: 1, {"", true}: 2, {event.EffectAtMostOnce, true}: 1,
	} {
		t.Run(fmt.Sprintf("effect %s, read-only %t", d.effect, d.readOnly), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fetch, requests := fetching(d.effect, d.readOnly)
				r := newRig(t).tools(fetch).turns(scripted.Turn{ToolCalls: calls("fetch", `{}`)}, scripted.Turn{Text: "done"})
				run := r.start(t.Context())
				outcome(t, run)
				events := r.whole(run.ID)
				if *requests != want || len(attempts(events)) != int(want) || count(events, "tool.attempt_failed") != int(want)-1 {
					t.Errorf("%d requests for %v, want %d", *requests, attempts(events), want)
				}
				if got := results(events)[0]; got.IsError != (want == 1) || want == 1 && !got.Retryable {
					t.Errorf("the result is %+v", got)
				}
			})
		})
	}
}

// A destructive tool may declare that running twice is harmless, and its owner may
// waive approvals: it runs once, whatever happened to it.
//
// rows: HAR-56, HAR-57, HAR-58, HAR-59
func TestDestructiveCallIsNeverRetried(t *testing.T) {
	for _, risk := range []event.Risk{event.RiskDelete, event.RiskFinancial, event.RiskSend, event.RiskPermission} {
		t.Run(string(risk), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				remove := flaky("remove", tool.Transient(errors.New("the server is busy")))
				remove.Risk = risk
				r := newRig(t).tools(remove).turns(scripted.Turn{ToolCalls: calls("remove", "{}")}, scripted.Turn{Text: "done"})
				r.cfg.Policy.Open = []string{"remove"}
				run := r.start(t.Context())
				outcome(t, run)
				events := r.whole(run.ID)
				if got := results(events)[0]; len(attempts(events)) != 1 || !got.IsError || !strings.Contains(got.Output, "busy") {
					t.Errorf("%d attempts, result %+v", len(attempts(events)), got)
				}

				ran := 0
				remove = flaky("remove")
				once := remove.Run
				remove.Run = func(ctx context.Context, c tool.Call) (tool.Result, error) { ran++; return once(ctx, c) }
				remove.Risk = risk
				store := &watched{Store: memory.New(nil), onAppend: failOnce("tool_result", journal.ErrFull)}
				r = newRig(t, store).tools(remove).turns(scripted.Turn{ToolCalls: calls("remove", "{}")}, scripted.Turn{Text: "done"})
				r.cfg.Policy.Open = []string{"remove"}
				run = r.start(t.Context())
				if _, err := run.Wait(t.Context()); err == nil {
					t.Fatal("the result was kept")
				}
				outcome(t, r.resume(run.ID))
				if got := results(r.whole(run.ID))[0]; ran != 1 || got.ErrorType != event.ErrorInDoubt {
					t.Errorf("ran %d times, result %+v", ran, got)
				}
			})
		})
	}
}

// flaky is a tool that fails as its errors say, one for each attempt, and then
// works.
func flaky(name string, failures ...error) tool.Tool {
	made := 0
	t := toolFunc(name, func(context.Context) (string, error) {
		if made++; made <= len(failures) {
			return "", failures[made-1]
		}
		return "at last", nil
	})
	t.Effect = event.EffectIdempotent
	return t
}

func TestAFailureIsTriedAgainOnlyWhenTheToolCallsItTransient(t *testing.T) {
	busy := errors.New("the server is busy")
	typed := &tool.Error{Type: event.ErrorNotFound, Message: "not there yet"}
	for _, tt := range []struct {
		name     string
		failure  error
		attempts int
		waits    time.Duration
	}{
		{"any failure", busy, 1, 0},
		{"a transient one", tool.Transient(busy), 2, 200 * time.Millisecond},
		{"a transient one, wrapped", fmt.Errorf("look it up: %w", tool.Transient(busy)), 2, 200 * time.Millisecond},
		{"a typed one", tool.Transient(typed), 2, 200 * time.Millisecond},
		{"with a time to wait", tool.TransientAfter(busy, 40*time.Second), 2, 40 * time.Second},
		{"with too long a time", tool.TransientAfter(busy, 2*time.Minute), 1, 0},
		{"nothing is wrong", tool.Transient(nil), 1, 0},
		{"a connection that timed out", fmt.Errorf("read on: %w", &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}), 2, 200 * time.Millisecond},
		{"a connection that was refused", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, 1, 0},
		{"a name that was not found in time", &net.DNSError{Name: "example.com", IsTimeout: true}, 2, 200 * time.Millisecond},
		{"a name that is not there", &net.DNSError{Name: "example.com", IsNotFound: true}, 1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t).tools(flaky("look", tt.failure)).turns(scripted.Turn{ToolCalls: calls("look", `{}`)}, scripted.Turn{Text: "done"})
				began := time.Now()
				run := r.start(t.Context())
				outcome(t, run)
				events := r.whole(run.ID)
				if got := attempts(events); len(got) != tt.attempts {
					t.Errorf("attempts %v, want %d", got, tt.attempts)
				}
				if waited := time.Since(began); waited < tt.waits || waited > tt.waits*5/4 {
					t.Errorf("waited %s, want %s and at most a quarter more", waited, tt.waits)
				}
			})
		})
	}
}

func TestAttemptsShareKeyAndLastOneIsTheResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := tool.Transient(errors.New("busy"))
		r := newRig(t).tools(flaky("look", busy, busy)).turns(scripted.Turn{ToolCalls: calls("look", `{}`)}, scripted.Turn{Text: "done"})
		run := r.start(t.Context())
		outcome(t, run)
		events := r.whole(run.ID)
		call := run.ID + "-1-1"
		want := []string{call + " 1 " + run.ID + ":" + call, call + " 2 " + run.ID + ":" + call, call + " 3 " + run.ID + ":" + call}
		if diff := cmp.Diff(want, attempts(events)); diff != "" {
			t.Error(diff)
		}
		if got := results(events); len(got) != 1 || got[0].Output != "at last" {
			t.Errorf("results %+v", got)
		}
		replayed, err := replay.Run(t.Context(), r.Past(), run.ID, r.env.Model)
		if err != nil || len(replayed.Divergences) > 0 {
			t.Errorf("replay: %+v, %v", replayed.Divergences, err)
		}
	})
}

func TestAWaitForAnotherAttemptCanBeInterruptedAndCancelled(t *testing.T) {
	busy := tool.TransientAfter(errors.New("busy"), 50*time.Second)
	for _, tt := range []struct {
		name  string
		cause error
	}{{"interrupted", engine.ErrInterrupted}, {"cancelled", errors.New("enough")}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t).tools(flaky("look", busy)).turns(scripted.Turn{ToolCalls: calls("look", `{}`)}, scripted.Turn{Text: "done"})
				ctx, end := context.WithCancelCause(t.Context())
				run := r.start(ctx)
				time.Sleep(10 * time.Second)
				end(tt.cause)
				state := wait(t, run)
				if tt.cause != engine.ErrInterrupted {
					if got := results(r.whole(run.ID)); len(got) != 1 || got[0].ErrorType != event.ErrorCancelled || !strings.Contains(got[0].Output, "another attempt") {
						t.Errorf("results %+v", got)
					}
					return
				}
				if state.Parked == nil || state.Parked.Reason != event.ParkInterrupted {
					t.Fatalf("state %+v", state)
				}
				time.Sleep(10 * time.Second)
				resumed := r.resume(run.ID)
				outcome(t, resumed)
				events := r.whole(run.ID)
				var started []time.Duration
				for _, e := range events {
					if e.Type() == event.TypeToolStarted {
						started = append(started, e.Time.Sub(events[0].Time))
					}
				}
				if want := []time.Duration{0, 50 * time.Second}; !slices.Equal(started, want) {
					t.Errorf("attempts at %v, want %v", started, want)
				}
			})
		})
	}
}

// The time between two attempts is a decision of the loop, and no tool's.
func TestAttemptKnowsTimeOfEarlierOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var spent []time.Duration
		slow := tool.New("slow", "", func(context.Context, struct{}) (string, error) { return "", nil })
		slow.Effect = event.EffectIdempotent
		slow.Run = func(_ context.Context, c tool.Call) (tool.Result, error) {
			spent = append(spent, c.Spent)
			if c.Attempt == 3 {
				return tool.Result{Output: "done"}, nil
			}
			time.Sleep(3 * time.Second)
			return tool.Result{}, tool.TransientAfter(errors.New("busy"), 20*time.Second)
		}
		r := newRig(t).tools(slow).turns(scripted.Turn{ToolCalls: calls("slow", `{}`)}, scripted.Turn{Text: "done"})
		outcome(t, r.start(t.Context()))
		if diff := cmp.Diff([]time.Duration{0, 3 * time.Second, 6 * time.Second}, spent); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}

func TestPauseDuringRetryWaitParksAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t).tools(flaky("look", tool.TransientAfter(errors.New("busy"), 50*time.Second))).
			turns(scripted.Turn{ToolCalls: calls("look", `{}`)}, scripted.Turn{Text: "done"})
		began := time.Now()
		run := r.start(t.Context())
		synctest.Wait()
		r.send(journal.Command{Run: run.ID, Kind: journal.Pause})
		if _, err := run.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		row, err := r.store.Run(t.Context(), run.ID)
		if err != nil || row.State != journal.Paused || time.Since(began) >= time.Second {
			t.Errorf("after %s the run is %s (%v)", time.Since(began), row.State, err)
		}
		next := r.resume(run.ID)
		if o := outcome(t, next); o.Reason != event.ReasonFinalAnswer || time.Since(began) != 50*time.Second {
			t.Errorf("ended with %+v after %s", o, time.Since(began))
		}
		if got := attempts(r.whole(run.ID)); len(got) != 2 {
			t.Errorf("attempts %v", got)
		}
	})
}
