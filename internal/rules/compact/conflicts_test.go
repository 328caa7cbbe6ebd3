package compact_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/rules/compact"
	"github.com/pawlrun/pawl/llm"
)

// The messages that each strategy and each setting keep, and the invariants that hold
// for all of them.
//
// rows: ALDO-23, ALF-50, ALF-51
func TestWhatStaysIsWhatTheStrategyOrItsOwnerSays(t *testing.T) {
	messages := talk(60) // a task, turns of two messages, a nudge after every tenth
	for _, c := range []struct {
		settings compact.Settings
		// stays is the number of the newest messages that stay unchanged: whole turns,
		// with the user messages before the first of them.
		stays int
	}{
		{compact.Settings{Strategy: compact.RollingWindow}, 5},
		{compact.Settings{Strategy: compact.PeriodicSummary}, 5},
		{compact.Settings{Strategy: compact.SummarizeOlder}, 7},
		{compact.Settings{}, 7},
		{compact.Settings{Strategy: compact.RollingWindow, KeepTurns: 1}, 3},
		{compact.Settings{Strategy: compact.PeriodicSummary, KeepTurns: 5}, 11},
		{compact.Settings{Strategy: compact.SummarizeOlder, KeepTurns: 3}, 7},
		{compact.Settings{Strategy: compact.RollingWindow, KeepMessages: 6}, 7},
		{compact.Settings{Strategy: compact.PeriodicSummary, KeepMessages: 3}, 3},
		{compact.Settings{Strategy: compact.SummarizeOlder, KeepMessages: 4}, 5},
		{compact.Settings{Strategy: compact.SummarizeOlder, KeepMessages: 1}, 1},
	} {
		t.Run(fmt.Sprintf("%s turns=%d messages=%d", c.settings.Strategy, c.settings.KeepTurns, c.settings.KeepMessages), func(t *testing.T) {
			in := situation(messages, 10_000)
			if c.settings.Strategy == compact.RollingWindow {
				// Rolling drops no more than necessary, so a small window shows the
				// rule.
				in = situation(messages, 300)
			}
			after, d := carry(t, c.settings, in, "what happened")
			if d == nil {
				t.Fatal("nothing was done")
			}
			if after[0] != messages[0] {
				t.Error("the task is gone")
			}
			same := 0
			for same < len(messages)-1 && same < len(after)-1 && after[len(after)-1-same] == messages[len(messages)-1-same] {
				same++
			}
			if same < c.stays || c.settings.Strategy != "" && same > c.stays {
				t.Errorf("%d of the newest messages are there as they were, want %d", same, c.stays)
			}
			for i, m := range after {
				if strings.HasPrefix(m.Text(), compact.Header) && (m.Role != llm.RoleUser || m.Origin != llm.OriginLoop) {
					t.Errorf("message %d, the summary, is said by %s (%s)", i, m.Role, m.Origin)
				}
			}
		})
	}
}

// Exactly six messages stay, unless the sixth is a result; then its call stays, too.
//
// rows: ALF-50, ALF-51
func TestSixMessagesStayUnlessTheyBeginWithinAGroup(t *testing.T) {
	for newest, stays := range map[string]int{"": 6, "go on": 7} {
		messages := talk(59)
		if newest != "" {
			messages = append(messages, llm.UserText(newest))
		}
		after, d := carry(t, compact.Settings{Strategy: compact.SummarizeOlder}, situation(messages, 10_000), "what happened")
		if d == nil {
			t.Fatal("nothing was done")
		}
		// The task and the summary precede them.
		if got := len(after) - 2; got != stays || after[2] != messages[len(messages)-stays] {
			t.Errorf("%d messages stay behind %q, want %d", got, newest, stays)
		}
	}
}
