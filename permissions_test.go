package pawl_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/llm/scripted"
)

// What a program says of permissions and of the loop is held to the rules of a file.
func TestPermissionsThatMeanNothingAreRefused(t *testing.T) {
	a := pawl.Agent{
		Model: pawl.Target{Name: "test/model", Client: scripted.New("test")},
		Permissions: pawl.Permissions{
			Rules: []policy.Rule{
				{Decision: "deny", Tool: "*", Path: "../x", Command: "a | b", Host: "http://x"},
				{Tool: "fs.wirte"},
			},
			Mode: "yolo", ProtectedPaths: []policy.Pattern{"{a,b}"}, AskToRead: []string{"fs.raed"},
		},
		Termination: pawl.Termination{OnDenied: "maybe", OnBudget: map[string]pawl.OnBudget{"max_naps": "ask"}}, Conversation: pawl.Conversation{Compaction: pawl.Compaction{Ratio: 3}},
		Agents: []pawl.AgentTool{{Name: "x", MaxDepth: -1, Agent: pawl.Agent{Model: pawl.Target{Name: "test/model", Client: scripted.New("test")}}}},
	}
	var fields []string
	for _, wrong := range wrongs(t, a.Validate()) {
		fields = append(fields, wrong.Field)
	}
	want := []string{
		"Agents[0].MaxDepth", "Termination.OnDenied", "Termination.OnBudget[max_naps]", "Conversation.Compaction",
		"Permissions.Rules[0].Path", "Permissions.Rules[0].Command", "Permissions.Rules[0].Host",
		"Permissions.Rules[1].Decision", "Permissions.Rules[1].Tool",
		"Permissions.ProtectedPaths[0]", "Permissions.AskToRead", "Permissions.Mode",
	}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
