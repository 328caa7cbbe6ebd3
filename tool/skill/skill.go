// Package skill provides skill.read, with which a model reads the whole text of a skill
// that its system text offers by name and description.
package skill

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/guidance"
	"github.com/pawlrun/pawl/tool"
)

// Name is the name of the tool.
const Name = "skill.read"

type args struct {
	Name string `json:"name" jsonschema:"the name of the skill"`
}

// New returns the tool for the skills of a run. It needs no permission, and its results
// are the owner's text: a skill whose file has changed since the run began is not read.
func New(skills []event.SkillFile) tool.Tool {
	t := tool.New(Name, "Read the whole text of a skill. The names are those under Skills.", func(_ context.Context, a args) (string, error) {
		at := slices.IndexFunc(skills, func(s event.SkillFile) bool { return s.Name == a.Name })
		if at < 0 {
			return "", &tool.Error{Type: event.ErrorNotFound, Message: fmt.Sprintf("there is no skill %q", a.Name), NothingCame: true}
		}
		text, err := guidance.TextOf(skills[at])
		if err != nil {
			return "", &tool.Error{Type: event.ErrorNotFound, Message: fmt.Sprintf("the skill %s cannot be read: %v", a.Name, err), NothingCame: true}
		}
		return text, nil
	})
	t.Effect, t.ReadOnly, t.Concurrent = event.EffectPure, true, true
	t.Labels = &event.Labels{}
	t.Describe = func(raw json.RawMessage) string {
		var a args
		_ = json.Unmarshal(raw, &a)
		return "read the skill " + a.Name
	}
	return t
}
