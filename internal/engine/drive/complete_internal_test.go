package drive

import (
	"strings"
	"testing"

	"github.com/pawlrun/pawl/llm"
)

func TestAModelIsNotAskedAboutAFileThatItDoesNotGet(t *testing.T) {
	here := llm.Media{Name: "here.png", Blob: "sha256-1", Data: []byte{1}}
	elsewhere := llm.Media{Name: "elsewhere.png", Blob: "sha256-2"}
	for _, c := range []struct {
		name  string
		parts llm.Parts
		want  string
	}{
		{"all here", llm.Parts{llm.Text{Text: "x"}, here, llm.Media{URL: "https://x.test"}, llm.ToolResult{Media: []llm.Media{here}}}, ""},
		{"one of the task's elsewhere", llm.Parts{here, elsewhere}, `"elsewhere.png" (sha256-2)`},
		{"one of a result's elsewhere", llm.Parts{llm.ToolResult{Media: []llm.Media{here, elsewhere}}}, `"elsewhere.png" (sha256-2)`},
	} {
		said, other := llm.UserText("x"), llm.UserText("y")
		err := complete([]*llm.Message{said, {Role: llm.RoleUser, Parts: c.parts}}, []*llm.Message{said, other})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
