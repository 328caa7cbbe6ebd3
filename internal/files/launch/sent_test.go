package launch_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/files/assembly"
	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/kinds"
	"github.com/pawlrun/pawl/journal/memory"
)

// sentModels holds texts of every kind that may be sent, by the place in which each
// names MODEL. HERE stands for another model that a text needs.
var sentModels = map[string][]string{
	"model_policy.primary.model": {
		"identity: {name: x}\nmodel_policy: {primary: MODEL}",
		"identity: {name: x}\nmodel_policy: {primary: {model: MODEL}}\niteration: {max_cycles: 3, termination_conditions: [{kind: text-includes, text: x}]}",
		"apiVersion: aldo-ai/agent.v1\nkind: Agent\nidentity: {name: x, version: 0.1.0}\nmodel_policy: {primary: {model: MODEL}}",
		"identity: {name: x}\nmodel_policy: {primary: MODEL}\nloop: {loopEnabled: true}",
	},
	"model_policy.fallbacks[0].model": {
		"identity: {name: x}\nmodel_policy: {primary: HERE, fallbacks: [MODEL]}",
		"identity: {name: x}\nmodel_policy: {primary: HERE, fallbacks: [MODEL]}\nloop: {loopEnabled: true}",
	},
	"model_policy.fallbacks[1].model":            {"identity: {name: x}\nmodel_policy: {primary: HERE, fallbacks: [HERE, MODEL]}"},
	"model_policy.roles.architect.model":         {"identity: {name: x}\nmodel_policy: {primary: HERE, roles: {architect: MODEL}}"},
	"model_policy.roles.editor.model":            {"identity: {name: x}\nmodel_policy: {primary: HERE, roles: {editor: MODEL}}"},
	"model_policy.roles.subagent.model":          {"identity: {name: x}\nmodel_policy: {role: subagent, roles: {subagent: MODEL}}"},
	"stop_when[0].judge.model":                   {sentLoop + "stop_when: [{judge: {model: MODEL, prompt: Is it done?}}]"},
	"stop_when[1].llm_judge.model":               {sentLoop + "stop_when: [{contains: x}, {llm_judge: {model: MODEL, prompt: Is it done?}}]"},
	"stop_when[0].rubric.model":                  {sentLoop + "stop_when: [{rubric: {model: MODEL, criteria: [{text: It is short.}]}}]"},
	"loop.stop_when[0].judge.model":              {strings.Replace(sentLoop, "Iterations: 2", "Iterations: 2, stop_when: [{judge: {model: MODEL, prompt: Is it done?}}]", 1)},
	"agents.dev.model":                           {sentFlow("model: MODEL", ""), "apiVersion: pawl/v1\n" + sentFlow("model: MODEL", ""), "apiVersion: pawl/v1\n" + sentFlow("model_policy: {primary: MODEL}", "")},
	"agents.unused.model":                        {sentFlow("", "") + "agents: {unused: {description: d, model: MODEL}}", "apiVersion: pawl/v1\n" + sentFlow("", "") + "agents: {unused: {description: d, model: MODEL}}"},
	"agents.dev.model_policy.fallbacks[0].model": {"apiVersion: pawl/v1\n" + sentFlow("model_policy: {primary: HERE, fallbacks: [MODEL]}", "")},
	"agents.dev.model_policy.roles.editor.model": {"apiVersion: pawl/v1\n" + sentFlow("model_policy: {primary: HERE, roles: {editor: MODEL}}", "")},
	"steps[0].model":                             {sentFlow("model: HERE", ", model: MODEL"), "apiVersion: pawl/v1\n" + sentFlow("model: HERE", ", model: MODEL")},
	"steps[0].loop.steps[0].model":               {sentFlow("model: HERE", ", loop: {maxIterations: 2, steps: [{id: in, agent: dev, instructions: Go., model: MODEL}]}")},
	"coordinator.model":                          {"apiVersion: pawl/v1\ncoordinator: {model: MODEL}\n" + sentFlow("model: HERE", "")},
}

const sentLoop = "identity: {name: x}\nmodel_policy: {primary: HERE}\nloop: {loopEnabled: true, maxIterations: 2}\n"

// sentFlow returns a workflow with more keys in its agent and its step.
func sentFlow(agent, step string) string {
	if agent == "" {
		return "name: x\nsteps: [{id: a, instructions: Go." + step + "}]\n"
	}
	return "name: x\nagents: {dev: {description: d, tools: [], " + agent + "}}\nsteps: [{id: a, agent: dev, instructions: Go." + step + "}]\n"
}

// A sent text cannot name a script outside of the agents directory, in any place and
// even if another model replaces it.
func TestASentTextNamesNoScriptOutside(t *testing.T) {
	above := t.TempDir()
	dir := filepath.Join(above, "agents")
	for name, text := range map[string]string{"x": "root:secret:0:0\n", "agents/here.yaml": "- text: One.\n- text: Two.\n- text: Three.\n- text: Four.\n"} {
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(above, name), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(above, "x"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	o := options(t)
	o.Dir = dir
	for place, texts := range sentModels {
		for _, text := range texts {
			for _, model := range []string{"scripted//etc/passwd", "scripted/" + filepath.Join(above, "x"), "scripted/../x", "scripted/sub/../../x", "scripted/link", "scripted/none"} {
				for _, instead := range []string{"", "scripted/here.yaml"} {
					o.Model = instead
					whole := strings.NewReplacer("MODEL", model, "HERE", "scripted/here.yaml").Replace(text)
					_, _, err := kinds.Sent("spec.yaml", []byte(whole)).Launch("Do it.", o)
					problems, _ := errors.AsType[decode.Errors](err)
					named := slices.ContainsFunc(problems, func(p decode.Problem) bool { return p.Path == place })
					if !named || !strings.Contains(err.Error(), "is not a file of the agents directory") || strings.Contains(err.Error(), "root") {
						t.Errorf("%s\nwith --model %q: %v, want a problem of %s", whole, instead, err, place)
					}
				}
			}
		}
	}
}

// Relative paths of a sent text start at the agents directory, not at the working
// directory of the process.
func TestPathsOfASentTextStartAtTheAgents(t *testing.T) {
	dir := agentsIn(t, map[string]string{"here.yaml": "- text: From the agents.\n- text: From the agents.\n"})
	t.Chdir(agentsIn(t, map[string]string{"here.yaml": "- text: From elsewhere.\n", "only.yaml": "- text: From elsewhere.\n"}))
	for place, texts := range sentModels {
		for _, text := range texts {
			o := options(t)
			o.Dir = dir
			whole := strings.NewReplacer("MODEL", "scripted/here.yaml", "HERE", "scripted/here.yaml").Replace(text)
			if place == "agents.unused.model" {
				o.Model = "scripted/here.yaml" // its step has none
			}
			started, env, err := kinds.Sent("spec.yaml", []byte(whole)).Launch("Do it.", o)
			if err != nil {
				t.Errorf("%s\n%v", whole, err)
				continue
			}
			if place != "agents.dev.model" && place != "model_policy.primary.model" || strings.Contains(text, "loop") || strings.Contains(text, "iteration") {
				if err := assembly.Closing(env, nil); err != nil {
					t.Error(err)
				}
				continue
			}
			_, events := run(t, memory.New(nil), started, env)
			if end := outcome(t, events); !end.OK || !strings.Contains(end.FinalOutput, "From the agents.") {
				t.Errorf("%s\nended as %+v", whole, end)
			}
			if _, _, err := kinds.Sent("spec.yaml", []byte(strings.ReplaceAll(text, "MODEL", "scripted/only.yaml"))).Launch("Do it.", o); err == nil {
				t.Errorf("%s\nread a script of the working directory", text)
			}
		}
	}
}
