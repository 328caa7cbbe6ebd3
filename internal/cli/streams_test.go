package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// says makes a stream contain something else, for any wire: pairs of old and new text.
func says(pairs ...string) func([]string) []string {
	r := strings.NewReplacer(pairs...)
	return func(events []string) []string {
		out := make([]string, len(events))
		for i, e := range events {
			out[i] = r.Replace(e)
		}
		return out
	}
}

func half(events []string) []string { return events[:len(events)/2] }

// The result of a stream that is no answer, or whose last event is false, shows what
// arrived. The answer after it is always "done".
func TestNoWireTakesADamagedStreamForAnAnswer(t *testing.T) {
	listing := reply{tool: "fs_list", args: `{"path":"."}`}
	for name, c := range map[string]struct {
		first  reply
		damage func([]string) []string
		// failed is how often an attempt fails, output what the run says.
		failed int
		output string
		// ran reports that the call of the first answer runs; refused that it does not,
		// and that the model gets the reason.
		ran, refused bool
	}{
		"cut off":                {first: reply{text: "half an answer"}, damage: half, failed: 1, output: "done"},
		"not JSON in the middle": {first: reply{text: "half an answer"}, damage: func(e []string) []string { return append(half(e), "{oops") }, failed: 1, output: "done"},
		"a call that is said to be none": {first: listing, ran: true, output: "done", damage: says(
			`"stop_reason":"tool_use"`, `"stop_reason":"end_turn"`, `"finish_reason":"tool_calls"`, `"finish_reason":"stop"`)},
		"a text that is said to be a call": {first: reply{text: "really the end"}, output: "really the end", damage: says(
			`"stop_reason":"end_turn"`, `"stop_reason":"tool_use"`, `"finish_reason":"stop"`, `"finish_reason":"tool_calls"`)},
		"a whole call that is said to be cut": {first: listing, refused: true, output: "done", damage: says(
			`"stop_reason":"tool_use"`, `"stop_reason":"max_tokens"`, `"finish_reason":"tool_calls"`, `"finish_reason":"length"`,
			`"finishReason":"STOP"`, `"finishReason":"MAX_TOKENS"`, `"type":"response.completed"`, `"type":"response.incomplete"`,
			`"status":"completed","output"`, `"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output"`)},
	} {
		c.first.damage = c.damage
		for _, model := range []string{"anthropic/claude-sonnet-4-5", "openai/gpt-5", "openai-chat/gpt-5", "google/gemini-2.5-pro"} {
			t.Run(name+" by "+model, func(t *testing.T) {
				upstream := newProvider(t, c.first, reply{text: "done"})
				p := newProject(t, map[string]string{"config.yaml": upstream.config(), "agent.yaml": "identity: {name: x}\ntools: {allow: [fs.list]}\n"})
				f := p.calls(testKey, "run", "agent.yaml", "go", "--model", model, "--config", "config.yaml", "--no-budget", "--json")
				events := p.events(f.out)
				if o := p.outcome(events); f.code != 0 || o.FinalOutput != c.output {
					t.Errorf("exit code %d, outcome %+v", f.code, o)
				}
				failed := of[event.ModelAttemptFailed](events)
				if len(failed) != c.failed {
					t.Errorf("%d attempts failed, want %d", len(failed), c.failed)
				}
				for _, a := range failed {
					if a.Usage.Input == 0 || a.PartialText == "" {
						t.Errorf("what was paid for is not kept: %+v", a)
					}
				}
				if started := of[event.ToolStarted](events); (len(started) == 1) != c.ran {
					t.Errorf("%d calls ran", len(started))
				}
				if results := of[event.ToolResult](events); (len(results) == 1 && results[0].ErrorType == event.ErrorTruncated) != c.refused {
					t.Errorf("the results are %+v", results)
				}
			})
		}
	}
}

func TestAProviderThatOnlySendsDamageIsAModelErrorThatSaysSo(t *testing.T) {
	upstream := newProvider(t, reply{text: "half an answer", damage: half})
	p := newProject(t, map[string]string{"config.yaml": upstream.config(), "agent.yaml": "identity: {name: x}\ntools: {allow: []}\n"})
	f := p.calls(testKey, "run", "agent.yaml", "go", "--model", "anthropic/claude-sonnet-4-5", "--config", "config.yaml", "--no-budget", "--json")
	o := p.outcome(p.events(f.out))
	if f.code != exitFailed || o.Reason != event.ReasonModelError || !strings.Contains(o.Error.Message, "the stream ended before the answer was complete") {
		t.Errorf("exit code %d, outcome %+v, %+v", f.code, o, o.Error)
	}
	if n := len(upstream.asked()); n != 5 || o.NextSafeAction == "" {
		t.Errorf("%d attempts, then %q", n, o.NextSafeAction)
	}
}

// A captive portal or a page that tells of maintenance may be gone when it is
// asked again; no model has seen the request, so that costs nothing.
func TestServerOfNoProtocolChargesNothing(t *testing.T) {
	for _, c := range []struct{ name, page, kind, told string }{
		{"a page", "<!doctype html><title>Log in</title>", "text/html", `began with "<!doctype html><title>Log in</title>"`},
		{"plain text", "Welcome to the hotel.\nPlease accept our terms.\n", "text/plain", `began with "Welcome to the hotel.\nPlease`},
	} {
		for _, model := range []string{"anthropic/claude-sonnet-4-5", "openai/gpt-5", "openai-chat/gpt-5", "google/gemini-2.5-pro"} {
			for _, whole := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s by %s, whole: %t", c.name, model, whole), func(t *testing.T) {
					upstream := newProvider(t, reply{foreign: c.page, header: map[string]string{"Content-Type": c.kind}})
					p := newProject(t, map[string]string{"config.yaml": upstream.config(), "agent.yaml": "identity: {name: x}\ntools: {allow: []}\nbudgets: {max_retries_per_model_call: 1}\n"})
					args := []string{"run", "agent.yaml", "go", "--model", model, "--config", "config.yaml", "--json"}
					if whole {
						args = append(args, "--no-stream")
					}
					f := p.calls(testKey, args...)
					events := p.events(f.out)
					o := p.outcome(events)
					if f.code != exitFailed || o.Reason != event.ReasonModelError || o.Usage != (llm.Usage{}) || o.Cost.USD != 0 {
						t.Errorf("exit code %d, outcome %+v", f.code, o)
					}
					if n := len(upstream.asked()); n != 2 {
						t.Errorf("it was asked %d times", n)
					}
					for _, said := range []string{"HTTP 200", c.kind, c.told, "base URL", upstream.url} {
						if !strings.Contains(o.Error.Message, said) {
							t.Errorf("%q is not told: %s", said, o.Error.Message)
						}
					}
					for _, b := range of[event.BudgetCommitted](events) {
						if b.USD != 0 || b.Input != 0 || b.Output != 0 {
							t.Errorf("charged is %+v", b)
						}
					}
				})
			}
		}
	}
}

// An error that comes before any of an answer costs what the HTTP status costs that says
// the same: nothing, but where the service had waited for the model in vain.
func TestAnErrorEventCostsWhatItsHTTPStatusCosts(t *testing.T) {
	failures := map[string]struct{ overloaded, timedOut string }{
		"anthropic/claude-sonnet-4-5": {
			"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
			"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"timeout_error\",\"message\":\"Timed out\"}}\n\n",
		},
		"openai/gpt-5": {
			"data: {\"type\":\"response.created\",\"response\":{\"id\":\"r1\",\"status\":\"in_progress\",\"output\":[]}}\n\n" +
				"data: {\"type\":\"error\",\"code\":\"server_overloaded\",\"message\":\"Overloaded\"}\n\n",
			"data: {\"type\":\"error\",\"error\":{\"code\":504,\"message\":\"Timed out\"}}\n\n",
		},
		"openai-chat/gpt-5": {
			"data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\ndata: {\"error\":{\"code\":503,\"message\":\"Overloaded\"}}\n\n",
			"data: {\"error\":{\"code\":504,\"message\":\"Timed out\"}}\n\n",
		},
		"google/gemini-2.5-pro": {
			"data: {\"error\":{\"code\":503,\"status\":\"UNAVAILABLE\",\"message\":\"Overloaded\"}}\n\n",
			"data: {\"error\":{\"code\":504,\"status\":\"DEADLINE_EXCEEDED\",\"message\":\"Timed out\"}}\n\n",
		},
	}
	for model, say := range failures {
		for name, c := range map[string]struct {
			first string
			costs bool
		}{
			"overloaded":    {first: say.overloaded},
			"only comments": {first: ": ping\n\n: ping\n\n"},
			"timed out":     {first: say.timedOut, costs: true},
		} {
			t.Run(name+" by "+model, func(t *testing.T) {
				fails := reply{foreign: c.first, header: map[string]string{"Content-Type": "text/event-stream"}}
				upstream := newProvider(t, fails, fails, reply{text: "done"})
				p := newProject(t, map[string]string{"config.yaml": upstream.config(), "agent.yaml": "identity: {name: x}\ntools: {allow: []}\n"})
				f := p.calls(testKey, "run", "agent.yaml", "go", "--model", model, "--config", "config.yaml", "--json")
				events := p.events(f.out)
				o, failed := p.outcome(events), of[event.ModelAttemptFailed](events)
				if f.code != 0 || len(failed) != 2 {
					t.Fatalf("exit code %d, outcome %+v, failed %+v", f.code, o, failed)
				}
				for _, a := range failed {
					if (a.Usage != llm.Usage{}) != c.costs || a.Cost.USD > 0 && !c.costs {
						t.Errorf("charged is %+v, %+v for: %s", a.Usage, a.Cost, a.Message)
					}
				}
				if answered := o.Usage.Input == 10 && o.Usage.Output == 2; answered == c.costs {
					t.Errorf("the run used %+v", o.Usage)
				}
			})
		}
	}
}

// JSON that is no answer is what the endpoint has to say, on whichever wire.
func TestObjectThatIsNoAnswerChargesNothing(t *testing.T) {
	for _, model := range []string{"anthropic/claude-sonnet-4-5", "openai/gpt-5", "openai-chat/gpt-5", "google/gemini-2.5-pro"} {
		t.Run(model, func(t *testing.T) {
			upstream := newProvider(t, reply{foreign: `{"status":"the model is being loaded"}`})
			p := newProject(t, map[string]string{"config.yaml": upstream.config(), "agent.yaml": "identity: {name: x}\ntools: {allow: []}\nbudgets: {max_retries_per_model_call: 1}\n"})
			f := p.calls(testKey, "run", "agent.yaml", "go", "--model", model, "--config", "config.yaml", "--json")
			o := p.outcome(p.events(f.out))
			if f.code != exitFailed || o.Usage != (llm.Usage{}) || o.Error == nil || !strings.Contains(o.Error.Message, "the model is being loaded") {
				t.Errorf("exit code %d, outcome %+v, %+v", f.code, o, o.Error)
			}
		})
	}
}
