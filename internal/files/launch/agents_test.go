package launch_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/files/launch"
)

// agentsIn writes agent files into a directory, and returns the directory.
func agentsIn(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// An agent is given no secret in its task, so a file may have both.
func TestAFileMayHaveSecretsAndAgents(t *testing.T) {
	t.Setenv("DOOR_WORD", "open sesame, please")
	dir := agentsIn(t, map[string]string{
		"lead.yaml": "identity: {name: lead}\nmodel_policy: {primary: openai/gpt-5}\ntools:\n  allow: [fs.write]\n" +
			"  secrets: {door: {env: DOOR_WORD, tools: [fs.write]}}\n  agents: [{name: helper, description: Helps., file: helper.yaml}]\n",
		"helper.yaml": "identity: {name: helper}\nmodel_policy: {primary: openai/gpt-5}\n",
	})
	o := options(t)
	keys := o.Getenv
	o.Getenv = func(name string) string {
		if name == "DOOR_WORD" {
			return os.Getenv(name)
		}
		return keys(name)
	}
	started, env, err := launch.Agent(read(t, filepath.Join(dir, "lead.yaml")), "go", o)
	if err != nil {
		t.Fatal(err)
	}
	defer env.Close()
	if _, there := env.Children["helper"]; !there || len(started.Agents) != 1 {
		t.Errorf("children %v, agents %v", env.Children, started.Agents)
	}
}

// An agent that is offered in several places, or started many times, is prepared once:
// its file is read once and its secrets are fetched once.
func TestWhatAnAgentNeedsIsPreparedOncePerTree(t *testing.T) {
	dir := agentsIn(t, map[string]string{
		"lead.yaml": "identity: {name: lead}\nmodel_policy: {primary: openai/gpt-5}\ntools:\n  allow: [fs.read]\n" +
			"  agents:\n  - {name: helper, description: Helps., file: helper.yaml}\n  - {name: second, description: Helps., file: helper.yaml}\n" +
			"  - {name: middle, description: Passes on., file: middle.yaml}\n",
		"middle.yaml": "identity: {name: middle}\nmodel_policy: {primary: openai/gpt-5}\ntools: {agents: [{name: helper, description: Helps., file: helper.yaml}]}\n",
		"helper.yaml": "identity: {name: helper}\nmodel_policy: {primary: openai/gpt-5}\ntools: {secrets: {door: {env: DOOR_WORD, tools: [fs.write]}}}\n",
	})
	fetched := 0
	o := options(t)
	keys := o.Getenv
	o.Getenv = func(name string) string {
		if name == "DOOR_WORD" {
			fetched++
			return "open sesame, please"
		}
		return keys(name)
	}
	_, env, err := launch.Agent(read(t, filepath.Join(dir, "lead.yaml")), "go", o)
	if err != nil {
		t.Fatal(err)
	}
	defer env.Close()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	begin := func(env perform.Env, name string) perform.Env {
		_, below, err := env.Children[name].Begin(json.RawMessage(`{"task": "x"}`))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = below.Close() })
		return below
	}
	for range 3 {
		begin(env, "helper")
		begin(env, "second")
		begin(begin(env, "middle"), "helper")
	}
	if fetched != 1 {
		t.Errorf("the secret was fetched %d times", fetched)
	}
}

func BenchmarkBeginChild(b *testing.B) {
	dir := b.TempDir()
	for name, text := range map[string]string{
		"lead.yaml":   "identity: {name: lead}\nmodel_policy: {primary: openai/gpt-5}\ntools: {agents: [{name: helper, description: Helps., file: helper.yaml}]}\n",
		"helper.yaml": "identity: {name: helper}\nmodel_policy: {primary: openai/gpt-5}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "lead.yaml"))
	if err != nil {
		b.Fatal(err)
	}
	o := launch.Options{Flags: launch.Flags{Workspace: b.TempDir()}, Host: launch.Host{Getenv: func(name string) string { return map[string]string{"OPENAI_API_KEY": "test"}[name] }}}
	_, env, err := launch.Agent(launch.File{Path: filepath.Join(dir, "lead.yaml"), Text: text}, "go", o)
	if err != nil {
		b.Fatal(err)
	}
	defer env.Close()
	for b.Loop() {
		_, below, err := env.Children["helper"].Begin(json.RawMessage(`{"task": "x"}`))
		if err != nil {
			b.Fatal(err)
		}
		if err := below.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
