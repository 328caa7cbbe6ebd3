package cli

import (
	"strings"
	"testing"
)

// What a provider said over its wire is recorded as a script, which says the
// same without it; and a run over it is replayed from its journal, without the
// provider and with it.
func TestWhatAProviderSaidIsPlayedAgainWithoutIt(t *testing.T) {
	for _, form := range wireForms {
		t.Run(strings.ReplaceAll(form.model, "/", " "), func(t *testing.T) {
			first := reply{tool: "fs_read", args: `{"path":"note.md"}`}
			upstream := newProvider(t, first, reply{text: "It says: a note."}, first, reply{text: "It said: a note."})
			p := newProject(t, map[string]string{"config.yaml": upstream.config(), "agent.yaml": readsAgent, "note.md": "a note"})
			pawl := func(code int, args ...string) finished {
				f := p.calls(testKey, append(args, "--config", "config.yaml")...)
				if f.code != code {
					t.Fatalf("pawl %s: exit code %d, want %d: %s", strings.Join(args, " "), f.code, code, f.err)
				}
				return f
			}
			pawl(0, "run", "agent.yaml", "look", "--model", form.model, "--no-budget", "--record", "said.yaml")
			id := p.newest()
			for _, args := range [][]string{
				{"run", "agent.yaml", "look", "--model", "scripted/said.yaml"},
				{"run", "agent.yaml", "look", "--model", "replay/" + id},
			} {
				if f := pawl(0, args...); f.out != "It says: a note.\n" {
					t.Errorf("%v: stdout %q, stderr %s", args, f.out, f.err)
				}
			}
			if f := pawl(0, "runs", "replay", id); !strings.Contains(f.out, "the same") || !strings.Contains(f.out, "2 requests made again, 2 compared byte for byte") {
				t.Errorf("replayed: %s", f.out)
			}
			if n := len(upstream.asked()); n != 2 {
				t.Fatalf("%d requests were made, want those of the first run alone", n)
			}

			// The file has changed, but the tools answer as they did.
			p.write("note.md", "another note")
			pawl(exitUsage, "runs", "replay", id, "--live-model", "--record", "said.yaml")
			f := pawl(0, "runs", "replay", id, "--live-model", "--record", "today.yaml")
			if f.out != "It said: a note.\n" || form.result.at(t, upstream.last()) != form.result.want {
				t.Errorf("stdout %q after %s", f.out, upstream.last())
			}
			if f := pawl(0, "run", "agent.yaml", "look", "--model", "scripted/today.yaml"); f.out != "It said: a note.\n" {
				t.Errorf("of the live replay was recorded: %s", p.read("today.yaml"))
			}
			f = pawl(exitUsage, "runs", "replay", id, "--record", "new.yaml")
			if f.clean(t, "--record needs --live-model"); p.exists("new.yaml")() {
				t.Error("something was recorded")
			}
		})
	}
}
