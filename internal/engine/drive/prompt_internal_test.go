package drive

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

func promptOf(tools, system string, sums ...uint32) prompt {
	return sumPrompt(&llm.Request{
		System: system, Tools: []llm.ToolDef{{Name: tools}}, Encoded: &llm.Encoded{Prompt: sums},
	}, new(prompt))
}

func TestTheFirstSegmentThatChangedIsNamed(t *testing.T) {
	before := promptOf("t", "s", 1, 10, 11, 12)
	for name, tt := range map[string]struct {
		now  prompt
		want string
	}{
		"nothing":                  {promptOf("t", "s", 1, 10, 11, 12), ""},
		"new messages":             {promptOf("t", "s", 1, 10, 11, 12, 13), ""},
		"tools and all after them": {promptOf("u", "r", 2, 20), "tools"},
		"system text":              {promptOf("t", "r", 2, 10, 11, 12), "system"},
		"what is set beside them":  {promptOf("t", "s", 2, 10, 11, 12), "settings"},
		"the first message":        {promptOf("t", "s", 1, 20, 11, 12), "message 1"},
		"the last message":         {promptOf("t", "s", 1, 10, 11, 20, 21), "message 3"},
		"a message is gone":        {promptOf("t", "s", 1, 10, 11), "message 3"},
	} {
		if got := tt.now.changed(&before); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

// Where the bytes before the messages are the same, so are the tools and the
// system text in them, which are not read again.
func TestWhatStandsBeforeTheMessagesIsLookedAtWhenItChanges(t *testing.T) {
	before := promptOf("t", "s", 1, 10)
	unread := &llm.Request{Encoded: &llm.Encoded{Prompt: []uint32{1, 10, 11}}}
	if now := sumPrompt(unread, &before); now.fixed != before.fixed {
		t.Errorf("the same bytes give %v, before %v", now.fixed, before.fixed)
	}
	unread.Encoded.Prompt[0] = 2
	if now := sumPrompt(unread, &before); now.fixed == before.fixed || now.changed(&before) != "tools" {
		t.Errorf("other bytes give %v, before %v", now.fixed, before.fixed)
	}
}

var samePrompt = cmp.Options{cmp.AllowUnexported(prompt{}, fixedSums{}), cmpopts.EquateEmpty()}

// What the journal tells of a request is what is new in it, and gives the whole
// of it back.
func TestTheJournalTellsAPromptByWhatIsNew(t *testing.T) {
	var before prompt
	for name, now := range map[string]prompt{
		"the first":     promptOf("t", "s", 1, 10),
		"one that grew": promptOf("t", "s", 1, 10, 11, 12),
		"a change":      promptOf("t", "r", 2, 10, 20, 12, 13),
		"a shorter one": promptOf("t", "r", 2, 10),
	} {
		told := now.since(&before)
		if diff := cmp.Diff(now, follow(before, told), samePrompt); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		before = now
	}
	grown := promptOf("t", "s", 1, 10, 11, 12)
	smaller := promptOf("t", "s", 1, 10, 11)
	if told := grown.since(&smaller); told.Fixed != "" || told.Kept != 2 || told.New != "0000000c" {
		t.Errorf("one more message is told as %+v", told)
	}
}

// A conversation that arrives all at once is recorded in bounded pieces, and the
// unrecorded rest counts as no change.
func TestWhatOneEventTellsIsBounded(t *testing.T) {
	sums := make([]uint32, 1001)
	for i := range sums {
		sums[i] = uint32(i)
	}
	var before prompt
	now := promptOf("t", "s", sums...)
	told := now.since(&before)
	if len(told.New) > 8*maxJournalledSums || told.Messages != 1000 {
		t.Errorf("%d characters tell of %d messages", len(told.New), told.Messages)
	}
	known := follow(before, told)
	next := promptOf("t", "s", append(sums, 2000, 2001)...)
	if got := next.changed(&known); got != "" {
		t.Errorf("a longer conversation is said to have changed at %q", got)
	}
	sums[50] = 7
	if got, other := "message 50", promptOf("t", "s", sums...); other.changed(&known) != got {
		t.Errorf("got %q, want %q", other.changed(&known), got)
	}
}

func TestAnOlderPromptIsNeverWrittenOver(t *testing.T) {
	old := promptOf("t", "s", 1, 10, 11, 12)
	kept := append([]uint32(nil), old.messages...)
	follow(old, &event.PromptSums{Kept: 1, Messages: 2, New: "000000ff"})
	if diff := cmp.Diff(kept, old.messages); diff != "" {
		t.Error(diff)
	}
}

// FuzzFollow: whatever stands in a journal, folding it does not panic.
func FuzzFollow(f *testing.F) {
	f.Add("000000010000000200000003", 1, 3, "0000000a")
	f.Add("zz", -4, -1, "abc")
	f.Fuzz(func(t *testing.T, fixed string, kept, messages int, news string) {
		p := follow(promptOf("t", "s", 1, 10, 11), &event.PromptSums{Fixed: fixed, Kept: kept, Messages: messages, New: news})
		q := promptOf("t", "s", 1, 10)
		_, _, _ = p.changed(&q), q.changed(&p), p.since(&q)
	})
}
