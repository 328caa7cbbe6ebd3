package stop_test

import (
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/stop"
)

// The message to the model is about its own circle.
func TestEachPatternHasWordsOfItsOwn(t *testing.T) {
	for _, tt := range []struct {
		pattern       stop.Pattern
		nudge, refuse string
	}{
		{stop.SameCall, "You have called fs.read with the same arguments 7 times in a row", "it repeats earlier calls"},
		{stop.AlternatingCalls, "the same two calls in turn", "it repeats earlier calls"},
		{stop.SameError, "Your last 7 calls all failed with the same kind of error", "your last 7 calls all failed"},
		{stop.UnchangedTree, "In 7 cycles you have edited files or run commands", "in 7 cycles your edits and commands"},
		{stop.Monologue, "You have said the same 7 times without calling a tool", ""},
	} {
		told := func(action event.StuckAction) string {
			return stop.Message(event.Stuck{Pattern: string(tt.pattern), Tool: "fs.read", Count: 7, Action: action})
		}
		if got := told(event.StuckNudge); !strings.Contains(got, tt.nudge) {
			t.Errorf("%s nudges with %q", tt.pattern, got)
		}
		if got := told(event.StuckBlock); !strings.Contains(got, tt.refuse) || !strings.HasPrefix(got, "this call was not run") {
			t.Errorf("%s refuses with %q", tt.pattern, got)
		}
	}
}

func TestAMonologueIsAboutNoTool(t *testing.T) {
	var r stop.Repetition
	r.Called(stop.Call{Tool: "fs.read", Digest: "a", Result: &event.ToolResult{Output: "x"}})
	for range 10 {
		r.Answered("I will look into it.", false)
	}
	if d, due := r.Due(); !due || d != (event.Stuck{Pattern: string(stop.Monologue), Count: 10, Action: event.StuckNudge}) {
		t.Errorf("due %t: %+v", due, d)
	}
	r.Answered("I look into it.", true)
	if d, due := r.Due(); due {
		t.Errorf("after a call: %+v", d)
	}
}
