package fs_test

import (
	"encoding/json"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

func TestWhatIsReadOfTheWorkspaceIsPrivateAndTrusted(t *testing.T) {
	p := newPlace(t, map[string]string{"a": "x"})
	for name, args := range map[string]string{
		"fs.read": `{"path":"a"}`, "fs.list": `{}`, "fs.glob": `{"pattern":"*"}`, "fs.grep": `{"pattern":"x"}`,
		"fs.write": `{"path":"b","content":"x"}`, "fs.edit": `{"path":"a","old_string":"x","new_string":"y"}`,
	} {
		c := p.set.Resolve("c", llm.ToolCall{Name: name, Args: json.RawMessage(args)})
		if c.Problem != nil {
			t.Errorf("%s: %s", name, c.Problem.Message)
		}
		if want := (event.Labels{Private: c.ReadOnly}); c.Labels != want {
			t.Errorf("%s: %+v, want %+v", name, c.Labels, want)
		}
	}
	if p.set.Fences() {
		t.Error("the owner's files need a fence")
	}
}
