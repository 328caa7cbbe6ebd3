// Package trajectory plays recorded runs of real agents through the real loop:
// a scripted model says what the model said, scripted tools answer what the
// tools answered, and the transcript must come out the same.
package trajectory

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

// step is one answer of the recorded model, with what was said before it and
// what its calls gave.
type step struct {
	Before []struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	} `json:"before"`
	Assistant struct {
		Text      string `json:"text"`
		Stop      string `json:"stop"`
		ToolCalls []struct {
			ID        string          `json:"id"`
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
			Valid     bool            `json:"arguments_valid"`
		} `json:"tool_calls"`
	} `json:"assistant"`
	Results []struct {
		CallID  string `json:"call_id"`
		Content string `json:"content"`
	} `json:"results"`
}

// broken reports whether the recorded turn was aborted or failed, or that the
// recording was closed in its place; it is no part of what follows.
func (s *step) broken() bool {
	a := &s.Assistant
	return a.Stop == "aborted" || a.Stop == "error" || a.Text == "" && len(a.ToolCalls) == 0
}

// entry is one line of a transcript.
type entry struct {
	Who, Text, Tool string
	Args            any
}

// rows: HAR-1, HAR-29, ALDO-42, ALDO-44
func TestRecordedRunsComeOutTheSame(t *testing.T) {
	root := filepath.Join("..", "..", "..", "shared", "fixtures", "trajectories")
	dirs, err := filepath.Glob(filepath.Join(root, "*", "steps.json"))
	if err != nil || len(dirs) == 0 {
		t.Skipf("no fixtures: %s is not there", root)
	}
	passed := 0
	for _, path := range dirs {
		name := filepath.Base(filepath.Dir(path))
		if t.Run(name, func(t *testing.T) { play(t, path) }) {
			passed++
		}
	}
	fmt.Printf("    gate trajectories: %d passed, %d failed, 0 skipped\n", passed, len(dirs)-passed)
}

func play(t *testing.T, path string) {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var steps []step
	if err := json.Unmarshal(data, &steps); err != nil {
		t.Fatal(err)
	}
	p := newPlayer(t, steps)
	var history []*llm.Message
	for _, s := range segments(steps) {
		history = p.run(t, s, history)
	}
	if diff := cmp.Diff(recorded(steps), transcript(history)); diff != "" {
		t.Errorf("the transcript differs (-recorded +played):\n%s", diff)
	}
}

// goOn stands where the recording holds no user's message.
const goOn = "Go on."

// segment is what one run covers: from a user's message to the answer that
// asks for no tool.
type segment struct {
	system string
	input  []string
	steps  []step
}

func segments(steps []step) []segment {
	var out []segment
	open, system := segment{}, ""
	for _, s := range steps {
		for _, b := range s.Before {
			if b.Role == "system" {
				system = b.Content
				continue
			}
			if len(open.steps) > 0 {
				out = append(out, open)
				open = segment{}
			}
			open.input = append(open.input, b.Content)
		}
		open.system = system
		if s.broken() {
			continue
		}
		if n := len(open.steps); n > 0 && len(open.steps[n-1].Assistant.ToolCalls) == 0 {
			// A second answer to the same message, without a call between.
			out = append(out, open)
			open = segment{system: system}
		}
		open.steps = append(open.steps, s)
	}
	if len(open.steps) > 0 {
		out = append(out, open)
	}
	return out
}

// player runs segments on one engine, each continuing the one before.
type player struct {
	engine *engine.Engine
	tools  *tool.Set

	mu      sync.Mutex
	results map[string][]string
}

func newPlayer(t *testing.T, steps []step) *player {
	t.Helper()
	p := &player{results: map[string][]string{}}
	p.engine = engine.New(memory.New(nil), func(string) (machine.Machine, error) { return agent.New(), nil }, engine.Options{})
	t.Cleanup(func() { _ = p.engine.Close() })
	names := map[string]bool{}
	var tools []tool.Tool
	for _, s := range steps {
		if s.broken() {
			continue
		}
		for _, c := range s.Assistant.ToolCalls {
			for _, r := range s.Results {
				if r.CallID == c.ID {
					p.results[c.Name] = append(p.results[c.Name], r.Content)
				}
			}
			if !names[c.Name] {
				names[c.Name] = true
				tools = append(tools, p.tool(c.Name))
			}
		}
	}
	var err error
	if p.tools, err = tool.NewSet(tools...); err != nil {
		t.Fatal(err)
	}
	return p
}

// tool answers its calls with the recorded results, in order: it is serial, as
// tools that do not say otherwise are.
func (p *player) tool(name string) tool.Tool {
	return tool.Tool{
		Name: name, Schema: json.RawMessage(`{"type":"object"}`),
		Run: func(context.Context, tool.Call) (tool.Result, error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			if len(p.results[name]) == 0 {
				return tool.Result{}, fmt.Errorf("no further result of %s was recorded", name)
			}
			r := p.results[name][0]
			p.results[name] = p.results[name][1:]
			return tool.Result{Output: r}, nil
		},
	}
}

func (p *player) run(t *testing.T, s segment, history []*llm.Message) []*llm.Message {
	t.Helper()
	last := &s.steps[len(s.steps)-1]
	var turns []scripted.Turn
	for _, st := range s.steps {
		turn := scripted.Turn{Text: st.Assistant.Text}
		for _, c := range st.Assistant.ToolCalls {
			turn.ToolCalls = append(turn.ToolCalls, scripted.Call{Name: c.Name, Arguments: c.Arguments})
		}
		turns = append(turns, turn)
	}
	cfg := agent.Config{
		System: s.system, Tools: p.tools.Defs(), Targets: []agent.Target{{Model: "scripted/recorded", Price: &llm.Price{}}},
	}
	cfg.Policy.Declared = true
	cfg.Limits.MaxResultChars = 1 << 30
	cfg.Limits.MaxToolCalls = 1 << 20
	if len(last.Assistant.ToolCalls) > 0 {
		// The recording stops after these calls; so does the run.
		cfg.Limits.MaxCycles = len(s.steps)
	}
	input := &llm.Message{Role: llm.RoleUser}
	for _, text := range s.input {
		input.Parts = append(input.Parts, llm.Text{Text: text})
	}
	if len(s.input) == 0 {
		input = llm.UserText(goOn)
	}
	started, err := agent.Start(cfg.WithDefaults(), input)
	if err != nil {
		t.Fatal(err)
	}
	if history != nil {
		started.From = &event.ContinuedFrom{Run: "before", Seq: 1, History: history}
	}
	model := scripted.New("recorded", turns...)
	r, err := p.engine.Start(t.Context(), started, perform.Env{
		Model: func(string) (llm.Model, string, error) { return model, "recorded", nil }, Tools: p.tools,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	m, ok := r.Machine().(*agent.Machine)
	if !ok {
		t.Fatalf("machine is a %T", r.Machine())
	}
	messages, err := m.Conversation()
	if err != nil {
		t.Fatal(err)
	}
	return messages
}

// recorded is the transcript that the recording holds.
func recorded(steps []step) []entry {
	var out []entry
	for _, seg := range segments(steps) {
		if len(seg.input) == 0 {
			out = append(out, entry{Who: "user", Text: goOn})
		}
		for _, text := range seg.input {
			out = append(out, entry{Who: "user", Text: text})
		}
		for _, s := range seg.steps {
			if strings.TrimSpace(s.Assistant.Text) != "" {
				out = append(out, entry{Who: "assistant", Text: s.Assistant.Text})
			}
			for _, c := range s.Assistant.ToolCalls {
				out = append(out, entry{Who: "assistant", Tool: c.Name, Args: decoded(c.Arguments)})
			}
			for _, c := range s.Assistant.ToolCalls {
				for _, r := range s.Results {
					if r.CallID == c.ID {
						out = append(out, entry{Who: "tool", Tool: c.Name, Text: r.Content})
					}
				}
			}
		}
	}
	return out
}

// transcript is what the loop's own history holds.
func transcript(messages []*llm.Message) []entry {
	var out []entry
	for _, m := range messages {
		for _, part := range m.Parts {
			switch p := part.(type) {
			case llm.Text:
				if strings.TrimSpace(p.Text) != "" {
					out = append(out, entry{Who: string(m.Role), Text: p.Text})
				}
			case llm.ToolCall:
				out = append(out, entry{Who: "assistant", Tool: p.Name, Args: decoded(p.Args)})
			case llm.ToolResult:
				out = append(out, entry{Who: "tool", Tool: p.Name, Text: p.Output})
			}
		}
	}
	return out
}

func decoded(raw json.RawMessage) any {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return string(raw)
	}
	return v
}
