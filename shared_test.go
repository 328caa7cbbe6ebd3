package pawl_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

// counted counts who begins to follow the end of a journal.
type counted struct {
	*memory.Store
	followers atomic.Int32
}

func (c *counted) Last(ctx context.Context) (int64, error) {
	c.followers.Add(1)
	return c.Store.Last(ctx)
}

// However many runs there are on a journal, its end is read once for all of them.
func TestAllRunsOfAJournalFollowItTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &counted{Store: memory.New(nil)}
		const runs = 20
		ended := make(chan error, runs)
		for range runs {
			a := pawl.Agent{Model: pawl.Target{
				Name: "scripted/slow", Price: &llm.Price{},
				Client: scripted.New("slow", scripted.Turn{Text: "done", Delay: time.Second}),
			}}
			run, err := a.Start(t.Context(), "go", pawl.Options{Journal: store})
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				var last event.Data
				for e, err := range run.Stream() {
					if err != nil {
						ended <- err
						return
					}
					last = e.Data
				}
				if _, ok := last.(event.RunCompleted); !ok {
					t.Errorf("the last event is %T", last)
				}
				ended <- nil
			}()
		}
		for range runs {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		if n := store.followers.Load(); n != 1 {
			t.Errorf("%d readers followed the journal", n)
		}
	})
}

// A tool reports how far each of its calls is: the stream has the first of several reports
// that follow each other closely, and none that comes after the end of the call.
func TestReportsOfToolsAreInTheStreamOnly(t *testing.T) {
	synctest.Test(t, testReports)
}

func testReports(t *testing.T) {
	var late []tool.Run
	works := tool.Tool{Name: "work", ReadOnly: true, Run: func(_ context.Context, c tool.Call) (tool.Result, error) {
		for _, before := range late {
			before.Report(9, 9, "late")
		}
		late = append(late, c.Run)
		synctest.Wait() // for the reader of the stream
		c.Run.Report(1, 2, "half of "+c.ID)
		synctest.Wait()
		c.Run.Report(2, 2, "all")
		return tool.Result{Output: "done"}, nil
	}}
	a := pawl.Agent{Model: says(scripted.Turn{ToolCalls: calls("work", `{}`)}, scripted.Turn{ToolCalls: calls("work", `{}`)}, scripted.Turn{Text: "the end"}), Tools: []tool.Tool{works}}
	run, err := a.Start(t.Context(), "go", pawl.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var live []event.ToolProgress
	for e, err := range run.Stream() {
		if err != nil {
			t.Fatal(err)
		}
		if p, is := e.Data.(event.ToolProgress); is && e.Seq == 0 {
			live = append(live, p)
		}
	}
	var want []event.ToolProgress
	for e, err := range run.Events() {
		if err != nil {
			t.Fatal(err)
		}
		switch d := e.Data.(type) {
		case event.ToolStarted:
			want = append(want, event.ToolProgress{CallID: d.CallID, Attempt: 1, Done: 1, Total: 2, Message: "half of " + d.CallID})
		case event.ToolProgress:
			t.Errorf("the journal has %+v", d)
		}
	}
	if len(want) != 2 || !slices.Equal(live, want) {
		t.Errorf("the stream has %+v, want %+v", live, want)
	}
}

// The stream has the output of a program until its call ends, without secrets that are
// printed in pieces. If a program prints too fast, the stream omits the older output.
func TestPrintedOutputIsInTheStreamOnly(t *testing.T) {
	synctest.Test(t, testPrinted)
}

func testPrinted(t *testing.T) {
	var late []tool.Run
	many := strings.Repeat("many\n", 10_000)
	works := tool.Tool{Name: "work", ReadOnly: true, Run: func(_ context.Context, c tool.Call) (tool.Result, error) {
		for _, before := range late {
			before.Print([]byte("late"))
		}
		late = append(late, c.Run)
		for _, piece := range []string{"one \xe2\x82", "\xac tok-123", "4567890 two\n"} {
			c.Run.Print([]byte(piece))
			time.Sleep(time.Second)
			synctest.Wait()
		}
		c.Run.Print([]byte(many))
		c.Run.Print([]byte("the end tok-1"))
		return tool.Result{Output: "done"}, nil
	}}
	a := pawl.Agent{
		Model: says(scripted.Turn{ToolCalls: calls("work", `{}`)}, scripted.Turn{ToolCalls: calls("work", `{}`)}, scripted.Turn{Text: "the end"}),
		Tools: []tool.Tool{works}, Secrets: []pawl.Secret{{Name: "token", Value: "tok-1234567890", Tools: []string{"work"}}},
	}
	run, err := a.Start(t.Context(), "go", pawl.Options{})
	if err != nil {
		t.Fatal(err)
	}
	printed, at := map[string]string{}, map[string]int64{}
	var ended []string
	for e, err := range run.Stream() {
		if err != nil {
			t.Fatal(err)
		}
		switch d := e.Data.(type) {
		case event.ToolOutput:
			if d.At > at[d.CallID] {
				printed[d.CallID] += "<cut>"
			}
			printed[d.CallID] += d.Text
			at[d.CallID] = d.At + int64(len(d.Text))
			if e.Seq > 0 || d.Attempt != 1 {
				t.Errorf("the journal has %+v", d)
			}
		case event.ToolResult:
			ended = append(ended, printed[d.CallID])
		}
	}
	if len(ended) != 2 || len(printed) != 2 {
		t.Fatalf("%d calls have ended and %d have printed", len(ended), len(printed))
	}
	for _, text := range ended {
		head, tail, cut := strings.Cut(text, "<cut>")
		if head != "one € ${secret:token} two\n" || !cut || len(tail) > 33<<10 || !strings.HasSuffix(tail, "many\nthe end tok-1") {
			t.Errorf("a call has printed %q, and %d bytes at its end", head, len(tail))
		}
	}
}

// The journal has structured content of a result apart from its text, of errors too, and
// each content once.
func TestStructuredContentIsJournalledApart(t *testing.T) {
	store := memory.New(nil)
	n := 0
	measures := tool.Tool{Name: "measure", ReadOnly: true, Run: func(context.Context, tool.Call) (tool.Result, error) {
		n++
		return tool.Result{Output: "see the sensor", IsError: n == 2, Structured: json.RawMessage(`{"temperature":21}`)}, nil
	}}
	turn := scripted.Turn{ToolCalls: calls("measure", `{}`)}
	a := pawl.Agent{Model: says(turn, turn, scripted.Turn{Text: "the end"}), Tools: []tool.Tool{measures}}
	run, err := a.Start(t.Context(), "go", pawl.Options{Journal: store})
	if err != nil {
		t.Fatal(err)
	}
	results := 0
	for e, err := range run.Events() {
		if err != nil {
			t.Fatal(err)
		}
		r, is := e.Data.(event.ToolResult)
		if !is {
			continue
		}
		results++
		text, err := store.Blob(t.Context(), r.Structured)
		if err != nil || string(text) != `{"temperature":21}` || !strings.Contains(r.Output, "see the sensor") || strings.Contains(r.Output, "21") || r.IsError != (results == 2) {
			t.Errorf("result %d is %+v with %s, %v", results, r, text, err)
		}
	}
	if results != 2 {
		t.Errorf("there are %d results", results)
	}
}
