package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/hook"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/sqlite"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

const password = `hunter2/hunter2+"x"`

// leaks are the ways in which a tool gives a secret away.
func leaks() []tool.Tool {
	attachment := llm.Media{MediaType: "text/plain", Name: "env", Data: []byte(strings.Repeat("x", 40<<10) + password)}
	small := llm.Media{MediaType: "text/plain", Name: "small", Data: []byte("PASSWORD=" + password)}
	return []tool.Tool{
		printing("says", tool.Result{Output: "the password is " + password}, nil),
		printing("tails", tool.Result{Output: strings.Repeat("a", 600) + password + strings.Repeat("b", 395)}, nil),
		printing("fails", tool.Result{Output: password}, errors.New(strings.Repeat("no, ", 400)+password)),
		printing("attaches", tool.Result{Output: "here", Media: []llm.Media{attachment, small}}, nil),
		tool.New("panics", "Panic.", func(context.Context, struct{}) (string, error) { panic(password) }),
	}
}

func TestNoFormOfASecretReachesTheJournalOrTheModel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, store).tools(leaks()...)
	r.env.Secrets = secret.NewRedactor(secret.Secret{Name: "DB", Value: password})
	r.cfg.Limits.MaxResultChars = 1000
	r.cfg.System = "Log in with " + password
	var turns []scripted.Turn
	for _, name := range []string{"says", "tails", "fails", "attaches", "panics"} {
		turns = append(turns, scripted.Turn{Text: "I try " + password, ToolCalls: calls(name, "{}")})
	}
	seen := &spy{inner: scripted.New("test", append(turns, scripted.Turn{Text: "It is " + password})...)}
	r.model(seen)
	task := llm.UserText("It is " + password)
	task.Parts = append(task.Parts, llm.Media{MediaType: "text/plain", Name: "long", Data: []byte(strings.Repeat("x", 40<<10) + password)})
	started, err := agent.Start(r.cfg.WithDefaults(), task)
	if err != nil {
		t.Fatal(err)
	}
	run, err := r.Start(t.Context(), started, r.env)
	if err != nil {
		t.Fatal(err)
	}
	drain(t, run, false)

	if text := r.journalText(run.ID); strings.Contains(text, "hunter2") || strings.Count(text, "${secret:DB}") < 10 {
		t.Errorf("the journal:\n%s", text)
	}
	if seen.found {
		t.Error("the model was sent the secret")
	}
	final, err := store.Run(t.Context(), run.ID)
	if err != nil || strings.Contains(string(final.Outcome), "hunter2") || !strings.Contains(string(final.Outcome), "${secret:DB}") {
		t.Errorf("the run's row says %s, %v", final.Outcome, err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", "-wal"} {
		if file, err := os.ReadFile(path + suffix); err == nil && strings.Contains(string(file), "hunter2") {
			t.Errorf("the secret is somewhere in journal.db%s", suffix)
		}
	}
}

// spy looks for the password in everything that a model is sent.
type spy struct {
	inner llm.Model
	found bool
}

func (s *spy) Generate(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llm.Text:
				s.found = s.found || strings.Contains(p.Text, "hunter2")
			case llm.Media:
				s.found = s.found || strings.Contains(string(p.Data), "hunter2") || len(p.Data) == 0
			case llm.ToolResult:
				s.found = s.found || strings.Contains(p.Output, "hunter2")
				for _, f := range p.Media {
					s.found = s.found || strings.Contains(string(f.Data), "hunter2") || len(f.Data) == 0
				}
			}
		}
	}
	s.found = s.found || strings.Contains(req.System, "hunter2")
	return s.inner.Generate(ctx, req)
}

func TestTheSecretsOfAProcessStayOutOfItsInboxToo(t *testing.T) {
	r := newRig(t).tools(printing("ask", tool.Result{Output: "asked"}, nil)).gate("ask")
	r.Engine = engine.New(r.store, newMachine, engine.Options{
		Secrets: secret.NewRedactor(secret.Secret{Name: "KEY", Value: password}),
	})
	r.turns(scripted.Turn{ToolCalls: calls("ask", "{}")}, scripted.Turn{Text: "done"})
	started, err := agent.Start(r.cfg.WithDefaults(), llm.UserText("use "+password))
	if err != nil {
		t.Fatal(err)
	}
	id := engine.NewID()
	err = r.Create(t.Context(), id, started, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.send(journal.Command{Run: id, Kind: journal.Input, Text: "or " + password})
	waiting, err := r.store.Inbox(t.Context(), id)
	if err != nil || len(waiting) != 1 || waiting[0].Text != "or ${secret:KEY}" {
		t.Errorf("the inbox holds %+v, %v", waiting, err)
	}
	drain(t, r.resume(id), false)
	if text := r.journalText(id); strings.Contains(text, "hunter2") || strings.Count(text, "${secret:KEY}") != 2 {
		t.Errorf("the journal:\n%s", text)
	}
}

func TestMessageToParkedRunIsRedacted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t).tools(printing("ask", tool.Result{Output: "asked"}, nil)).gate("ask")
		r.env.Secrets = secret.NewRedactor(secret.Secret{Name: "DB", Value: password})
		r.turns(scripted.Turn{ToolCalls: calls("ask", "{}")}, scripted.Turn{Text: "done"})
		run := r.start(t.Context())
		parkedAs(t, run, event.ParkApproval)
		args, err := json.Marshal(map[string]string{"word": password})
		if err != nil {
			t.Fatal(err)
		}
		decision := journal.Command{Kind: journal.Approve, CallID: run.ID + "-1-1", By: "ann", Args: args, Text: "use " + password}
		if err := run.Send(t.Context(), decision); err != nil {
			t.Fatal(err)
		}
		if text := r.journalText(run.ID); strings.Contains(text, "hunter2") || strings.Count(text, "${secret:DB}") != 2 {
			t.Errorf("the journal:\n%s", text)
		}
	})
}

// What a model says beside a call, and a secret among the arguments themselves,
// leave the others as they are.
func TestRedactionKeepsArgumentsOfTheCall(t *testing.T) {
	for name, text := range map[string]string{"in the arguments": "I try", "in the text, too": "I try " + password} {
		var got map[string]string
		r := newRig(t).tools(tool.New("work", "Works.", func(_ context.Context, args map[string]string) (string, error) {
			got = args
			return "worked", nil
		}))
		r.env.Secrets = secret.NewRedactor(secret.Secret{Name: "DB", Value: password})
		args, err := json.Marshal(map[string]string{"to": "ann", "word": password})
		if err != nil {
			t.Fatal(err)
		}
		r.turns(scripted.Turn{Text: text, ToolCalls: calls("work", string(args))}, scripted.Turn{Text: "done"})
		run := r.start(t.Context())
		if o := outcome(t, run); !o.OK {
			t.Errorf("%s: %+v", name, o)
		}
		if want := map[string]string{"to": "ann", "word": "${secret:DB}"}; !maps.Equal(got, want) {
			t.Errorf("%s: the call ran with %v", name, got)
		}
		made := of[event.ToolCall](r.whole(run.ID))
		if len(made) != 1 || made[0].Digest != tool.Digest("work", made[0].Args, "") {
			t.Errorf("%s: the digest is of other arguments: %+v", name, made)
		}
	}
}

// Half of a secret is not found any more, so what is cut is looked through before.
func TestNothingIsCutThroughASecret(t *testing.T) {
	filled := func(before int) string { return strings.Repeat("a", before) + password + strings.Repeat("b", 2<<20) }
	output := filled(1000*2/3 - 5)
	broken := modelFunc(func(context.Context, *llm.Request, func(llm.Delta)) (*llm.Response, error) {
		return &llm.Response{Parts: llm.Parts{llm.Text{Text: filled(1<<20 - 5)}}}, &llm.Error{Class: llm.ClassInvalid, Message: "no"}
	})
	gate := func(stage event.HookStage, a hook.Answer, err error) hook.Hook {
		return hook.Hook{Stage: stage, Name: "gate", Kind: hook.Gate, Run: func(context.Context, hook.Call) (hook.Answer, error) { return a, err }}
	}
	for name, prepare := range map[string]func(r *rig){
		"the output of a gate": func(r *rig) { r.hooks(gate(event.HookAfterTool, hook.Answer{Output: &output}, nil)) },
		"the reason of a gate": func(r *rig) {
			r.hooks(gate(event.HookBeforeTool, hook.Answer{Decision: event.HookBlock, Reason: filled(3995)}, nil))
		},
		"the failure of a gate":    func(r *rig) { r.hooks(gate(event.HookBeforeTool, hook.Answer{}, errors.New(filled(3995)))) },
		"what a model said before": func(r *rig) { r.model(broken) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t).tools(say()).turns(saying("hi")...)
			r.env.Secrets = secret.NewRedactor(secret.Secret{Name: "DB", Value: password})
			r.cfg.Limits.MaxResultChars = 1000
			prepare(r)
			run := r.start(t.Context())
			outcome(t, run)
			if text := r.journalText(run.ID); strings.Contains(text, "aahun") {
				at := strings.Index(text, "aahun")
				t.Errorf("the journal holds %q", text[at:at+30])
			}
		})
	}
}
