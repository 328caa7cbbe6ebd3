package external_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool/external"
)

const (
	claudeStream = `{"type":"system","subtype":"init","cwd":"/w","session_id":"s","tools":["Bash"],"model":"m"}
{"type":"assistant","message":{"id":"1","type":"message","role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"t","name":"Bash","input":{}}],"usage":{"input_tokens":3}}}
{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"type: result"}]}}
{"type":"rate_limit_event","rate_limit_info":{"status":"allowed","resetsAt":1774447200,"rateLimitType":"five_hour"}}
{"type":"result","subtype":"success","is_error":false,"duration_ms":4086,"num_turns":2,"result":"All tests pass.","session_id":"s","total_cost_usd":0.024,"usage":{"input_tokens":3,"cache_creation_input_tokens":2783,"cache_read_input_tokens":14707,"output_tokens":6}}
`
	codexStream = `{"type":"thread.started","thread_id":"th"}
{"type":"turn.started"}
{"type":"item.completed","item":{"id":"item_0","type":"reasoning","text":"hm"}}
{"type":"error","message":"Reconnecting... 1/5"}
{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"All tests pass."}}
{"type":"turn.completed","usage":{"input_tokens":24763,"cached_input_tokens":24448,"output_tokens":122}}
`
	geminiStream = `Loaded cached credentials.
{"type":"init","timestamp":"2026-10-10T12:00:00.000Z","session_id":"s","model":"m"}
{"type":"message","role":"user","content":"x","timestamp":"2026-10-10T12:00:00.000Z"}
{"type":"message","role":"assistant","content":"I look.","delta":true}
{"type":"tool_use","tool_name":"Bash","tool_id":"t","parameters":{}}
{"type":"tool_result","tool_id":"t","status":"success","output":"ok"}
{"type":"message","role":"assistant","content":"All tests","delta":true}
{"type":"message","role":"assistant","content":" pass.","delta":true}
{"type":"result","status":"success","stats":{"total_tokens":120,"input_tokens":100,"output_tokens":20,"cached":40,"duration_ms":5000,"tool_calls":1}}
`
	pawlStream = `{"pos":1,"seq":1,"run":"root","time":"2026-10-10T12:00:00Z","type":"run.started","data":{"vocabulary":1,"machine":"agent/1","projection":"1","kind":"Agent","config":{},"input":null},"prev":""}
{"pos":2,"seq":1,"run":"below","parent":"root","time":"2026-10-10T12:00:00Z","type":"run.completed","data":{"outcome":{"status":"failed","reason":"model_error","ok":false,"completed":false,"final_output":"no","last_output":"no","cycles":1,"usage":{"input":1,"output":1}}},"prev":""}
{"pos":3,"seq":2,"run":"root","time":"2026-10-10T12:00:00Z","type":"run.completed","data":{"outcome":{"status":"completed","reason":"final_answer","ok":true,"completed":true,"final_output":"All tests pass.","last_output":"All tests pass.","cycles":1,"usage":{"input":10,"output":5},"cost":{"usd":0.5,"priced":true}}},"prev":""}
`
)

func TestTheStreamsOfKnownAgentsAreRead(t *testing.T) {
	const text = "All tests pass."
	for _, c := range []struct {
		name, stream string
		want         event.CommandReport
	}{
		{"claude", claudeStream, event.CommandReport{
			Form: "claude", Text: text, Cost: &llm.Cost{USD: 0.024, Priced: true},
			Usage: &llm.Usage{Input: 3 + 2783 + 14707, CacheRead: 14707, CacheWrite: 2783, Output: 6},
		}},
		{"claude without its stream", claudeStream[strings.Index(claudeStream, `{"type":"result"`):], event.CommandReport{
			Form: "claude", Text: text, Cost: &llm.Cost{USD: 0.024, Priced: true},
			Usage: &llm.Usage{Input: 3 + 2783 + 14707, CacheRead: 14707, CacheWrite: 2783, Output: 6},
		}},
		{"codex", codexStream, event.CommandReport{Form: "codex", Text: text, Usage: &llm.Usage{Input: 24763, CacheRead: 24448, Output: 122}}},
		{"codex that fails", `{"type":"thread.started","thread_id":"th"}` + "\n" + `{"type":"turn.failed","error":{"message":"no model"}}`,
			event.CommandReport{Form: "codex", Failed: "no model"}},
		{"gemini", geminiStream, event.CommandReport{Form: "gemini", Text: text, Usage: &llm.Usage{Input: 100, CacheRead: 40, Output: 20}}},
		{"pawl", pawlStream, event.CommandReport{
			Form: "pawl", Text: text, Usage: &llm.Usage{Input: 10, Output: 5}, Cost: &llm.Cost{USD: 0.5, Priced: true},
		}},
		{"a text", "All tests pass.\n" + `{"type":"report","text":"x"}` + "\n" + claudeStream, event.CommandReport{}},
		{"a number that is none", `{"type":"result","result":"x","total_cost_usd":-5,"usage":{"input_tokens":-1}}`, event.CommandReport{Form: "claude", Text: "x"}},
		{"other fields than are known", `{"type":"result","result":{"parts":[]},"total_cost_usd":"free","usage":[]}`, event.CommandReport{Form: "claude"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, size := range []int{1, 7, 1 << 20} {
				var s external.Stream
				for rest := []byte(c.stream); len(rest) > 0; rest = rest[min(size, len(rest)):] {
					if n, err := s.Write(rest[:min(size, len(rest))]); n != min(size, len(rest)) || err != nil {
						t.Fatal(n, err)
					}
				}
				if diff := cmp.Diff(c.want, s.Report()); diff != "" {
					t.Errorf("in pieces of %d: %s", size, diff)
				}
			}
		})
	}
}

// A program that fails because its provider lets it do nothing for a while says so in
// its last words, or in its stream. One that does its work, or fails in another way,
// may speak of limits as it likes.
func TestAProviderLimitIsKnownByWhatTheProgramSaysLast(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	in := func(d time.Duration) *time.Time { until := now.Add(d); return &until }
	at := func(seconds int64) *time.Time { until := time.Unix(seconds, 0).UTC(); return &until }
	for _, c := range []struct {
		name, script string
		limited      bool
		until        *time.Time
	}{
		{"claude", `echo 'Claude AI usage limit reached|1774447200'; exit 1`, true, at(1774447200)},
		{"claude of today", `echo "You've hit your session limit · resets 3pm (Europe/Berlin)"; exit 1`, true, nil},
		{"claude in its stream", `echo '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1774447200}}'
echo '{"type":"result","subtype":"success","is_error":true,"result":"nothing more today"}'; exit 1`, true, at(1774447200)},
		{"codex", `echo '{"type":"thread.started"}
{"type":"turn.failed","error":{"message":"You'\''ve hit your usage limit. Upgrade, or try again in 3 days 4 hours 5 minutes."}}'; exit 1`, true, in(76*time.Hour + 5*time.Minute)},
		{"codex on its errors", `echo 'ERROR: exceeded retry limit, last status: 429 Too Many Requests' >&2; exit 1`, true, nil},
		{"gemini", `echo 'Error: {"code":429,"status":"RESOURCE_EXHAUSTED"} Please retry in 45s' >&2; exit 1`, true, in(45 * time.Second)},
		{"pawl", `echo '` + strings.Split(pawlStream, "\n")[0] + `
{"pos":2,"seq":2,"run":"root","time":"2026-10-10T12:00:00Z","type":"run.parked","data":{"reason":"interrupted","detail":"throttled","until":"2026-11-23T13:00:00Z"},"prev":""}'; exit 4`, true, in(time.Hour)},
		{"one that does its work", `echo 'the server says: 429 Too Many Requests, rate limit exceeded'`, false, nil},
		{"one that fails at something else", `echo 'rate limit exceeded: I fixed that'; for i in 1 2 3 4 5 6; do echo line; done; echo 'the tests fail' >&2; exit 1`, false, nil},
		{"pawl that waits for somebody", `echo '` + strings.Split(pawlStream, "\n")[0] + `
{"pos":2,"seq":2,"run":"root","time":"2026-10-10T12:00:00Z","type":"run.parked","data":{"reason":"approval_required","detail":"shell.exec"},"prev":""}'; exit 4`, false, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options(t)
			o.Now = func() time.Time { return now }
			end := ends(t, o, "x", script(t, c.script))
			var r event.CommandReport
			if end.Report != nil {
				r = *end.Report
			}
			if (r.Limited != "") != c.limited || !cmp.Equal(r.Until, c.until) {
				t.Errorf("it reports %+v until %v", r, r.Until)
			}
		})
	}
}

// What a program prints is anything; what is read of it can be journalled.
func FuzzStream(f *testing.F) {
	for _, s := range []string{claudeStream, codexStream, geminiStream, pawlStream, "{", `{"type":"init"}` + "\n" + `{"type":"message","role":"assistant","content":1e999}`} {
		f.Add([]byte(s), 5)
	}
	f.Fuzz(func(t *testing.T, text []byte, size int) {
		var whole, pieces external.Stream
		_, _ = whole.Write(text)
		for rest := text; len(rest) > 0; {
			n := min(max(size, 1), len(rest))
			_, _ = pieces.Write(rest[:n])
			rest = rest[n:]
		}
		r := whole.Report()
		if diff := cmp.Diff(r, pieces.Report()); diff != "" {
			t.Error(diff)
		}
		if u := r.Usage; u != nil && (u.Input < 0 || u.Output < 0) || r.Cost != nil && r.Cost.USD < 0 {
			t.Errorf("it takes %+v, %+v", r.Usage, r.Cost)
		}
		if _, err := json.Marshal(r); err != nil {
			t.Error(err)
		}
	})
}

func FuzzLimit(f *testing.F) {
	f.Add("You've hit your usage limit. Try again in 3 days 4 hours.")
	f.Add("usage limit reached|1774447200")
	f.Fuzz(func(t *testing.T, text string) {
		now := time.Unix(1_700_000_000, 0)
		if said, until := external.LimitIn(text, now); said == "" && until != nil {
			t.Error("a limit that nobody spoke of ends")
		}
	})
}
