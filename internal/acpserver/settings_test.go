package acpserver_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coder/acp-go-sdk"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/sessions"
	"github.com/pawlrun/pawl/journal/memory"
)

// A mode that the editor sets holds for the next runs, and is there again after a load in
// another process.
func TestModesAreJournalledAndLoaded(t *testing.T) {
	store, dir := memory.New(nil), t.TempDir()
	c := start(t, store, dir, writes)
	c.ask = choose("allow_once")
	s, err := c.NewSession(t.Context(), acp.NewSessionRequest{Cwd: dir, McpServers: []acp.McpServer{}})
	if err != nil || s.Modes == nil || s.Modes.CurrentModeId != "default" || len(s.Modes.AvailableModes) != 3 {
		t.Fatalf("the modes are %+v: %v", s.Modes, err)
	}
	id := s.SessionId
	for _, step := range []struct {
		mode acp.SessionModeId
		// written reports whether the file may be written.
		written bool
	}{{"plan", false}, {"default", true}, {"plan", false}} {
		if _, err := c.SetSessionMode(t.Context(), acp.SetSessionModeRequest{SessionId: id, ModeId: step.mode}); err != nil {
			t.Fatal(err)
		}
		c.say(id, "Write a.txt.")
		_, err := os.Stat(filepath.Join(dir, "a.txt"))
		if written := err == nil; written != step.written {
			t.Errorf("in the mode %s the file is written: %t", step.mode, written)
		}
		_ = os.Remove(filepath.Join(dir, "a.txt"))
	}
	if _, err := c.SetSessionMode(t.Context(), acp.SetSessionModeRequest{SessionId: id, ModeId: "bypass"}); err == nil {
		t.Error("an editor may set the mode bypass")
	}
	c.quit()
	again := start(t, store, dir, writes)
	loaded, err := again.LoadSession(t.Context(), acp.LoadSessionRequest{SessionId: id, Cwd: dir, McpServers: []acp.McpServer{}})
	if err != nil || loaded.Modes.CurrentModeId != "plan" {
		t.Errorf("loaded, the modes are %+v: %v", loaded.Modes, err)
	}
}

func TestTheEditorChoosesTheModelOfTheNextRun(t *testing.T) {
	store, dir := memory.New(nil), t.TempDir()
	c := start(t, store, dir, "- text: The first model.\n")
	agent := strings.Replace(agentFile, "script.yaml}}", "script.yaml}, fallbacks: [{model: scripted/other.yaml}]}", 1)
	for name, text := range map[string]string{"agent.yaml": agent, "other.yaml": "- text: The other model.\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := c.NewSession(t.Context(), acp.NewSessionRequest{Cwd: dir, McpServers: []acp.McpServer{}})
	if err != nil || len(s.ConfigOptions) != 1 {
		t.Fatalf("the options are %+v: %v", s.ConfigOptions, err)
	}
	set := func(model acp.SessionConfigValueId) (acp.SetSessionConfigOptionResponse, error) {
		return c.SetSessionConfigOption(t.Context(), acp.SetSessionConfigOptionRequest{ValueId: &acp.SetSessionConfigOptionValueId{SessionId: s.SessionId, ConfigId: "model", Value: model}})
	}
	for _, step := range []struct{ model, text string }{{"", "The first model."}, {"scripted/other.yaml", "The other model."}, {"", "The other model."}, {"scripted/script.yaml", "The first model."}} {
		if step.model != "" {
			if r, err := set(acp.SessionConfigValueId(step.model)); err != nil || string(r.ConfigOptions[0].Select.CurrentValue) != step.model {
				t.Fatalf("set to %s, the options are %+v: %v", step.model, r, err)
			}
		}
		c.say(s.SessionId, "Hello.")
		if got := c.transcript(); !strings.Contains(got, step.text) {
			t.Errorf("after the choice of %q it answers %q", step.model, got)
		}
	}
	if _, err := set("scripted/none.yaml"); err == nil {
		t.Error("an editor may choose a model that is not offered")
	}
}

// The commands come after the answer that creates a session, and the one that is offered
// works.
func TestTheCommandsThatAreAdvertisedWork(t *testing.T) {
	store, dir := memory.New(nil), t.TempDir()
	c := start(t, store, dir, "- text: Hi.\n")
	for range 2 {
		id := c.begin()
		c.awaitNoted("commands " + string(id) + " compact")
		c.say(id, "Hello.")
		if c.say(id, "/compact"); !strings.Contains(c.transcript(), "is shortened before") {
			t.Error("the command is not answered")
		}
		for i, want := range []bool{true, false} {
			c.say(id, "More.")
			chain, err := sessions.Chain(t.Context(), store, string(id))
			if err != nil || len(chain) != i+2 {
				t.Fatalf("the session has %d runs: %v", len(chain), err)
			}
			started, err := drive.At[event.RunStarted](t.Context(), store, chain[i+1].ID, 0)
			if now := strings.Contains(string(started.Config), "compact_now"); err != nil || now != want {
				t.Errorf("run %d compacts at its start: %t, %v", i+1, now, err)
			}
		}
	}
}
