package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/replay"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
)

// A run receives messages before its task is known, while a model thinks, with a file,
// and while it is parked; the last one arrives when it would have ended.
func TestTheMessagesOfARunAreGivenAgainWhereTheyCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked [][]string
		r := newRig(t).model(modelFunc(func(ctx context.Context, req *llm.Request, _ func(llm.Delta)) (*llm.Response, error) {
			var texts []string
			for _, m := range req.Messages {
				words := m.Parts.Text()
				for _, p := range m.Parts {
					if f, ok := p.(llm.Media); ok {
						words += " [" + string(f.Data) + "]"
					}
				}
				texts = append(texts, string(m.Role)+": "+words)
			}
			asked = append(asked, texts)
			select {
			case <-time.After(10 * time.Second):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			return said("answer"), nil
		}))
		say := func(run, text string, files ...llm.Media) {
			r.send(journal.Command{Run: run, Kind: journal.Input, By: "ann", Text: text, Media: files})
		}
		run := r.start(t.Context())
		time.Sleep(4 * time.Second)
		say(run.ID, "one more thing")
		time.Sleep(time.Second)
		say(run.ID, "", llm.Media{MediaType: "text/plain", Name: "a.txt", Data: []byte("a file")})
		time.Sleep(10 * time.Second)
		r.send(journal.Command{Run: run.ID, Kind: journal.Pause})
		say(run.ID, "before the pause")
		wait(t, run)
		say(run.ID, "while it was parked")
		if o := outcome(t, r.resume(run.ID)); !o.OK {
			t.Fatalf("outcome %+v", o)
		}
		first := asked

		asked = nil
		var err error
		if r.env.Inputs, err = replay.Inputs(t.Context(), r.Past(), run.ID); err != nil {
			t.Fatal(err)
		}
		again := r.start(t.Context())
		if o := outcome(t, again); !o.OK {
			t.Fatalf("outcome %+v", o)
		}
		if diff := cmp.Diff(first, asked); diff != "" {
			t.Errorf("what the model was asked (-first +again):\n%s", diff)
		}
		by := map[string]int{}
		for _, e := range r.whole(again.ID) {
			if d, ok := e.Data.(event.InputReceived); ok {
				by[d.By]++
			}
		}
		if by["ann"] != 4 {
			t.Errorf("messages by %v", by)
		}
	})
}

func TestAMessageThatWasTheTaskIsThereBeforeTheFirstCycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t).model(takes(time.Second))
		r.env.Inputs = map[int][]event.InputReceived{0: {{Text: "the task", By: "ann"}}}
		started, err := agent.Start(r.cfg.WithDefaults(), nil)
		if err != nil {
			t.Fatal(err)
		}
		run, err := r.Start(t.Context(), started, r.env)
		if err != nil {
			t.Fatal(err)
		}
		if o := outcome(t, run); o.Reason != event.ReasonFinalAnswer {
			t.Errorf("outcome %+v", o)
		}
	})
}
