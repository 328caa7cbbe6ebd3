package engine_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

// listening is a model that keeps what it was asked.
type listening struct {
	llm.Model
	asked []llm.Request
}

func (l *listening) Generate(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	l.asked = append(l.asked, *req)
	return l.Model.Generate(ctx, req)
}

// A text that is one JSON object and matches the schema is the result, too, where the run
// lets it be; any other text is not.
func TestATextOfJSONIsAResultToo(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","required":["done"],"properties":{"done":{"type":"boolean"}}}`)
	for name, c := range map[string]struct {
		texts  []string
		result string
		told   string
	}{
		"at once":               {[]string{" {\"done\": true}\n"}, `{"done": true}`, ""},
		"at the second attempt": {[]string{`{"done": "yes"}`, `{"done": true}`}, `{"done": true}`, "does not match its schema"},
		"once it was asked for": {[]string{"It is done.", `{"done": false}`}, `{"done": false}`, "submit_result"},
		"invalid twice":         {[]string{`{"done": 1}`, `{"done": 2}`}, "", "does not match its schema"},
		"prose with JSON in it": {[]string{`So: {"done": true}`, "Done."}, "", "submit_result"},
		"another value of JSON": {[]string{`[true]`, `true`}, "", "submit_result"},
	} {
		t.Run(name, func(t *testing.T) {
			var turns []scripted.Turn
			for _, text := range c.texts {
				turns = append(turns, scripted.Turn{Text: text})
			}
			r := newRig(t).tools(tool.ForResult(schema))
			r.cfg.Result, r.cfg.ResultText = tool.ResultName, true
			heard := &listening{Model: scripted.New("test", turns...)}
			o := outcome(t, r.model(heard).start(t.Context()))
			raw, _ := json.Marshal(heard.asked[len(heard.asked)-1].Messages)
			if o.OK != (c.result != "") || string(o.Result) != c.result || len(heard.asked) != len(c.texts) || !strings.Contains(string(raw), c.told) {
				t.Errorf("%+v, %s, %d requests: %s", o, o.Result, len(heard.asked), raw)
			}
			if !o.OK && o.Error.Message != agent.NoResult {
				t.Errorf("%+v", o.Error)
			}
		})
	}
}

// A run with a result tool ends with a valid call of it and with nothing else.
// rows: DAG-31, DAG-32, DAG-38
func TestAResultComesByItsToolAlone(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","required":["tags"],"properties":{"tags":{"type":"array","items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"}}}}}}`)
	const valid, invalid = `{"tags":[{"name":"a"}]}`, `{"tags":[{"name":"a"},{"name":2}]}`
	for name, c := range map[string]struct {
		turns  []scripted.Turn
		result string
		text   string
		writes int
		// offered is how many tools the last request names, and told what its last
		// message holds.
		offered int
		told    string
	}{
		"at once": {[]scripted.Turn{{Text: "Here.", ToolCalls: calls("submit_result", valid)}}, valid, "Here.", 0, 2, ""},
		"beside a call that runs all the same, the first that is valid": {
			[]scripted.Turn{{ToolCalls: calls("submit_result", invalid, "submit_result", valid, "write", `{}`, "submit_result", `{"tags":[]}`)}}, valid, "", 1, 2, ""},
		"at the second attempt": {
			[]scripted.Turn{{Text: "One.", ToolCalls: calls("submit_result", invalid)}, {Text: "Two.", ToolCalls: calls("submit_result", valid)}}, valid, "One.\n\nTwo.", 0, 2, "/tags/1/name"},
		"once it was asked for": {
			[]scripted.Turn{{Text: "One."}, {Text: "Two.", ToolCalls: calls("submit_result", valid)}}, valid, "One.\n\nTwo.", 0, 1, "submit_result"},
		"asked for, and invalid first": {
			[]scripted.Turn{{Text: "One."}, {ToolCalls: calls("submit_result", invalid)}, {ToolCalls: calls("submit_result", valid)}}, valid, "One.", 0, 1, "/tags/1/name"},
		"never": {[]scripted.Turn{{Text: "One."}, {Text: "Two."}}, "", "One.\n\nTwo.", 0, 1, "submit_result"},
	} {
		t.Run(name, func(t *testing.T) {
			writes := 0
			write := toolFunc("write", func(context.Context) (string, error) { writes++; return "written", nil })
			r := newRig(t).tools(tool.ForResult(schema), write)
			r.cfg.Result, r.cfg.AllText = tool.ResultName, true
			heard := &listening{Model: scripted.New("test", c.turns...)}
			o := outcome(t, r.model(heard).start(t.Context()))
			if o.OK != (c.result != "") || string(o.Result) != c.result || o.FinalOutput != c.text || writes != c.writes {
				t.Errorf("%+v, %s, %d writes", o, o.Result, writes)
			}
			if !o.OK && (o.Error.Message != agent.NoResult || o.Reason != event.ReasonNoAnswerOrCall) {
				t.Errorf("%+v", o.Error)
			}
			last := heard.asked[len(heard.asked)-1]
			raw, _ := json.Marshal(last.Messages[len(last.Messages)-1])
			if len(heard.asked) != len(c.turns) || len(last.Tools) != c.offered || last.Tools[len(last.Tools)-c.offered].Name != "submit_result" || !strings.Contains(string(raw), c.told) {
				t.Errorf("%d requests, the last with %d tools: %s", len(heard.asked), len(last.Tools), raw)
			}
		})
	}
}
