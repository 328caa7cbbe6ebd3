package engine_test

import (
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm/scripted"
)

// rows: ALF-33
func TestAnAnswerAskedForWholeIsShownOnce(t *testing.T) {
	r := newRig(t).turns(scripted.Turn{Text: "word by word"})
	r.cfg.NoStream = true
	var shown []string
	for _, e := range r.heard() {
		if d, ok := e.Data.(event.Text); ok {
			shown = append(shown, d.Text)
		}
	}
	if len(shown) != 1 || shown[0] != "word by word" {
		t.Errorf("shown: %q", shown)
	}
}
