package engine_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
)

func TestWhatIsNoTextIsTheSameToTheLiveRunAndToItsJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t).tools(tool.Tool{Name: "work", Schema: anyObject, Run: func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{Output: "worked", Pin: "p\xff", Media: []llm.Media{{MediaType: "image/png", Name: "n\xfe", Data: []byte("\xff")}}}, nil
		}}).model(modelFunc(func(_ context.Context, req *llm.Request, _ func(llm.Delta)) (*llm.Response, error) {
			if req.Ordinal > 0 {
				return said("done\xff\xfe"), nil
			}
			return &llm.Response{Parts: llm.Parts{llm.Text{Text: "I\xffwork"}, llm.ToolCall{Name: "work", Args: json.RawMessage(`{"a":1}`)}}}, nil
		}))
		run := r.start(t.Context())
		o := outcome(t, run)
		events := r.whole(run.ID)
		if stored := events[len(events)-1].Data.(event.RunCompleted).Outcome; o.FinalOutput != "done\ufffd\ufffd" || o.FinalOutput != stored.FinalOutput {
			t.Errorf("output %q, in the journal %q", o.FinalOutput, stored.FinalOutput)
		}
		folded, err := r.Inspect(t.Context(), run.ID)
		if err != nil {
			t.Fatal(err)
		}
		live, again := run.Machine().(*agent.Machine).Transcript(), folded.(*agent.Machine).Transcript()
		for i := range live {
			for k, p := range live[i].Parts {
				switch p := p.(type) {
				case llm.Text:
					if q := again[i].Parts[k].(llm.Text); p.Text != q.Text {
						t.Errorf("message %d: %q, from the journal %q", i, p.Text, q.Text)
					}
				case llm.ToolCall:
					if string(p.Args) != `{"a":1}` {
						t.Errorf("message %d: arguments %s", i, p.Args)
					}
				case llm.ToolResult:
					if q := again[i].Parts[k].(llm.ToolResult); p.Pin != q.Pin || p.Media[0].Name != q.Media[0].Name || len(p.Media[0].Data) != 1 {
						t.Errorf("message %d: %+v, from the journal %+v", i, p, q)
					}
				}
			}
		}
	})
}
