package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/mcptest"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/mcp"
)

// taskCall makes an attempt at a call that is done as a task, and returns what was kept.
func taskCall(t *testing.T, s *mcp.Server, text string, c tool.Call) (tool.Result, json.RawMessage, error) {
	t.Helper()
	var kept json.RawMessage
	c.ID, c.Key, c.Args = "c1", "key-1", json.RawMessage(`{"text":"`+text+`"}`)
	c.Run = &keeps{task: &kept}
	r, err := find(t, s, "docs.task").Run(t.Context(), c)
	return r, kept, err
}

func TestTaskIsAskedForUntilItIsDone(t *testing.T) {
	for name, web := range map[string]bool{"stdio": false, "HTTP": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			o := w.options("ledger")
			if web {
				site := httptest.NewServer(&mcptest.Server{Ledger: w.ledgerFile()})
				defer site.Close()
				o = mcp.Options{Server: "docs", URL: site.URL}
			}
			r, kept, err := taskCall(t, connect(t, o), "quick", tool.Call{Attempt: 1})
			if err != nil || r.Output != "done" || !strings.Contains(string(kept), "t-quick") {
				t.Errorf("the result is %+v, %v, and %s is kept", r, err, kept)
			}
			if calls, gets := w.ledger(t, "call"), w.ledger(t, "get"); len(calls) != 1 || len(gets) != 3 {
				t.Errorf("the calls are %q, the questions %q", calls, gets)
			}
		})
	}
}

// An attempt that has a task asks for it and sends no call.
func TestKeptTaskIsAskedForInAnotherProcess(t *testing.T) {
	w := newWorld(t)
	first := connect(t, w.options("ledger"))
	_, kept, err := taskCall(t, first, "long", tool.Call{Attempt: 1})
	later, is := errors.AsType[*tool.NotYet](err)
	if !is || later.Wait != time.Hour || kept == nil {
		t.Fatalf("a long task gives %v", err)
	}
	s := again(t, w, first, "ledger")
	r, _, err := taskCall(t, s, "long", tool.Call{Attempt: 2, Task: kept})
	if err != nil || r.Output != "done" {
		t.Errorf("the result is %+v, %v", r, err)
	}
	if calls, gets := w.ledger(t, "call"), w.ledger(t, "get"); len(calls) != 1 || len(gets) != 1 {
		t.Errorf("the calls are %q, the questions %q", calls, gets)
	}
}

func TestTaskThatFailsOrIsNotKnown(t *testing.T) {
	w := newWorld(t)
	s := connect(t, w.options("ledger"))
	for text, want := range map[string]event.ErrorType{"failed": event.ErrorTool, "unknown": event.ErrorInDoubt} {
		if _, _, err := taskCall(t, s, text, tool.Call{Attempt: 1}); err == nil {
			t.Errorf("%s has a result", text)
		} else if kind, again := kindOf(err); kind != want || again {
			t.Errorf("%s fails as %s: %v", text, kind, err)
		}
	}
}

// A task that needs input asks a person, and has the answer in the next attempt.
func TestTaskThatNeedsInput(t *testing.T) {
	w := newWorld(t)
	s := connect(t, w.options("ledger"))
	_, kept, err := taskCall(t, s, "asks", tool.Call{Attempt: 1})
	needs, is := errors.AsType[*tool.InputRequired](err)
	if !is || needs.Form.Message != "Your name?" {
		t.Fatalf("it gives %v", err)
	}
	r, _, err := taskCall(t, s, "asks", tool.Call{Attempt: 2, Task: kept, Input: gives(needs.Form, `{"name":"Ann"}`)})
	if err != nil || r.Output != "done" {
		t.Errorf("the result is %+v, %v", r, err)
	}
	if calls, updates := w.ledger(t, "call"), w.ledger(t, "update"); len(calls) != 1 || len(updates) != 1 || !strings.Contains(updates[0], `"Ann"`) {
		t.Errorf("the calls are %q, the updates %q", calls, updates)
	}
}

// keeps is a run that keeps a task and in which no person is there.
type keeps struct {
	present
	task *json.RawMessage
}

func (k *keeps) Keep(_ context.Context, task json.RawMessage) error {
	*k.task = task
	return nil
}
