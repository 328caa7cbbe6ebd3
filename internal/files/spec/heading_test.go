package spec_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/internal/files/spec"
)

func TestTheHeadingOfAnAgentFile(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want *spec.Heading
	}{
		"a whole file":             {"identity: {name: a, version: 0.1.0, description: \" b \"}\nprompt: {system: x}\n", &spec.Heading{Name: "a", Version: "0.1.0", Description: "b"}},
		"one that is wrong":        {"identity: {name: a}\nmodel_polic: x\n", &spec.Heading{Name: "a"}},
		"one without a name":       {"model_policy: {primary: scripted/x}\n", &spec.Heading{}},
		"a kind alone":             {"kind: Agent\n", &spec.Heading{}},
		"a name that is no scalar": {"identity: {name: [a]}\n", &spec.Heading{}},
		"a workflow":               {"identity: {name: a}\nsteps: []\n", nil},
		"one of whatever kind":     {"kind: Agent\nidentity: {name: a}\nsteps: []\n", nil},
		"another kind":             {"kind: Goal\nidentity: {name: a}\n", nil},
		"anything else":            {"a: b\n", nil},
		"a list":                   {"- identity\n", nil},
		"nothing":                  {"", nil},
		"no YAML":                  {"identity: {", nil},
	} {
		got := spec.ParseHeading([]byte(c.text))
		if got.Agent() != (c.want != nil) {
			t.Errorf("%s: it is an agent's: %t", name, got.Agent())
		} else if got.Agent() {
			got.Kind, got.Keys = "", nil
			if diff := cmp.Diff(*c.want, got); diff != "" {
				t.Errorf("%s (-want +got)\n%s", name, diff)
			}
		}
	}
}

// FuzzHeading: whatever a file in the agents directory holds, a list of agents
// can be made, and a file that is right says of itself what a run would say.
func FuzzHeading(f *testing.F) {
	for _, seed := range []string{
		"identity: {name: a, version: 0.1.0, description: b}\nmodel_policy: {primary: anthropic/claude-sonnet-4-5}\nprompt: {system: x}\n",
		"kind: Agent\nidentity: {name: a}\nmodel_policy: {primary: anthropic/claude-sonnet-4-5}\n", "identity: &a {name: *a}\n", "identity: {<<: {name: a}}\n", "? [a]\n: b\n", "\xff",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		h := spec.ParseHeading(text)
		ok := h.Agent()
		a, err := spec.ParseAgent("agent.yaml", text, spec.Options{})
		if err != nil {
			return
		}
		if a.Kind == "Agent" && !ok || ok && (h.Name != a.Identity.Name || h.Version != a.Identity.Version) {
			t.Errorf("a run says %+v, the heading %+v, %t", a.Identity, h, ok)
		}
	})
}
