package anthropic_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/anthropic"
)

// marked are the places of the marks in a body, by message, with their
// lifetimes.
func marked(t *testing.T, body string) map[string]string {
	t.Helper()
	type block struct {
		Control *struct{ TTL string } `json:"cache_control"`
	}
	var req struct {
		Tools, System []block
		Messages      []struct{ Content []block }
	}
	if err := json.Unmarshal([]byte(body), &req); err != nil {
		t.Fatal(err)
	}
	at := map[string]string{}
	note := func(where string, blocks []block) {
		for i, b := range blocks {
			if b.Control != nil && i != len(blocks)-1 {
				t.Errorf("%s: a mark inside", where)
			}
			if b.Control != nil {
				at[where] = b.Control.TTL
			}
		}
	}
	note("tools", req.Tools)
	note("system", req.System)
	for i, m := range req.Messages {
		note(fmt.Sprint(i), m.Content)
	}
	return at
}

func TestTheLifetimeOfTheCacheIsTheRuns(t *testing.T) {
	for asked, want := range map[llm.Caching]string{"": "", llm.CacheShort: "", llm.CacheLong: "1h"} {
		req := everything()
		req.Cache = asked
		got := marked(t, encoded(t, modelOf(nil), req))
		if len(got) != 3 {
			t.Errorf("%q: marks at %v", asked, got)
		}
		for where, ttl := range got {
			if ttl != want {
				t.Errorf("%q: lifetime %q at %s", asked, ttl, where)
			}
		}
	}
	req := everything()
	req.Cache = llm.CacheOff
	if got := encoded(t, modelOf(nil), req); strings.Contains(got, "cache_control") {
		t.Error("a run without cache is marked")
	}
}

func TestWhatLeavesNothingOnTheWireTakesNoMark(t *testing.T) {
	req := ask()
	req.Messages = append(req.Messages,
		&llm.Message{Role: llm.RoleAssistant, Origin: target, Parts: llm.Parts{llm.Text{Text: "hm"}}},
		llm.UserText("and?"), llm.UserText(" "))
	got := marked(t, encoded(t, modelOf(nil), req))
	if _, ok := got["2"]; !ok || len(got) != 2 {
		t.Errorf("marks at %v", got)
	}
}

// The shortest prefix that is cached depends on the model.
func TestTheMinimumIsTheModels(t *testing.T) {
	m := modelOf(nil)
	for model, want := range map[string]int64{
		"claude-opus-5": 512, "claude-sonnet-4-5-20250929": 1024, "claude-opus-4-8": 1024, "claude-haiku-4-5": 4096, "claude-opus-4-6": 4096,
	} {
		rules, ok := m.CacheRules(model, "")
		if !ok || rules.Minimum != want || rules.Lifetime != 5*time.Minute || !rules.WritesReported || rules.BestEffort {
			t.Errorf("%s: %+v, %t", model, rules, ok)
		}
	}
	if rules, _ := m.CacheRules("claude-opus-5", llm.CacheLong); rules.Lifetime != time.Hour {
		t.Errorf("an hour is %s", rules.Lifetime)
	}
	if _, ok := m.CacheRules("claude-opus-5", llm.CacheOff); ok {
		t.Error("rules of a cache that is off")
	}
	if _, ok := anthropic.New(anthropic.Options{NoCache: true}).CacheRules("claude-opus-5", ""); ok {
		t.Error("rules of a cache that nobody asks for")
	}
}

// A request may hold four marks, and a fifth is refused. Where no system text was
// given, the words about the schema are one all the same.
func TestWordsAboutASchemaTakeTheMarkOfTheSystemText(t *testing.T) {
	req := ask()
	req.System, req.SchemaInPrompt, req.Schema = "", true, json.RawMessage(`{"type":"object"}`)
	req.Tools = []llm.ToolDef{{Name: "look", Schema: json.RawMessage(`{"type":"object"}`)}}
	got := marked(t, encoded(t, modelOf(nil), req))
	if _, ok := got["system"]; !ok || len(got) != 2 {
		t.Errorf("marks at %v", got)
	}
}
