package compact_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/compact"
	"github.com/pawlrun/pawl/llm"
)

// An event about another conversation indicates damage, and must not change this one.
func TestAnEventAboutAnotherConversationIsRefused(t *testing.T) {
	messages := talk(2) // five messages
	ranges := func(places ...int) event.HistoryCompressed {
		var d event.HistoryCompressed
		for i := 0; i < len(places); i += 2 {
			d.Removed = append(d.Removed, event.MessageRange{From: places[i], To: places[i+1]})
		}
		return d
	}
	summary := func(at int) event.HistoryCompressed { return event.HistoryCompressed{Summary: "sum", SummaryAt: at} }
	for name, c := range map[string]struct {
		event   event.HistoryCompressed
		refused bool
	}{
		"all of it":                   {ranges(0, 5), false},
		"one range behind another":    {ranges(0, 1, 1, 3, 4, 5), false},
		"a range before the first":    {ranges(-1, 2), true},
		"a range behind the last":     {ranges(4, 6), true},
		"a range of nothing":          {ranges(2, 2), true},
		"a range that ends before it": {ranges(3, 2), true},
		"two that overlap":            {ranges(1, 3, 2, 4), true},
		"two in the wrong order":      {ranges(3, 4, 0, 1), true},
		"a summary before all":        {summary(0), false},
		"a summary behind all":        {summary(5), false},
		"a summary before the first":  {summary(-1), true},
		"a summary beyond the end":    {summary(6), true},
	} {
		after, err := compact.Apply(messages, c.event)
		if (err != nil) != c.refused || err != nil && after != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := compact.Fates(messages, c.event); (err != nil) != (c.refused && c.event.Summary == "") {
			t.Errorf("the fates of %s: %v", name, err)
		}
	}
}

// A shortened result keeps the same number of characters at both ends, whatever their
// encoding, and the number of characters that it omits.
func TestAResultIsShortenedToItsEnds(t *testing.T) {
	output := "äbcdé" + strings.Repeat("日", 30) + "vwxyß"
	for _, c := range []struct {
		event event.HistoryCompressed
		want  string
		fate  compact.Fate
	}{
		{event.HistoryCompressed{}, output, compact.Stayed},
		{event.HistoryCompressed{Clamped: []event.ClampedResult{{CallID: "c1", Chars: 5}}}, output, compact.Stayed},
		{event.HistoryCompressed{Clamped: []event.ClampedResult{{CallID: "c0", Chars: 5}}},
			"äbcdé\n[… 30 characters left out to save room …]\nvwxyß", compact.Shortened},
		{event.HistoryCompressed{Clamped: []event.ClampedResult{{CallID: "c0", Chars: 20}}}, output, compact.Shortened},
		{event.HistoryCompressed{Cleared: []string{"c0"}},
			"[The result of read (40 characters) was cleared to save room. Call read again if you need it.]", compact.Shortened},
		{event.HistoryCompressed{Repeated: []event.RepeatedResult{{CallID: "c0", By: "c1"}}},
			"[A later result of read says this again; it was taken out here to save room.]", compact.Shortened},
	} {
		messages := append([]*llm.Message{llm.UserText("task")}, turn("c0", output, nil)...)
		after, err := compact.Apply(messages, c.event)
		if err != nil {
			t.Fatal(err)
		}
		if got := after[2].Parts[0].(llm.ToolResult); got.Output != c.want || got.CallID != "c0" {
			t.Errorf("%+v: the result reads\n%s\nwant\n%s", c.event, got.Output, c.want)
		}
		fates, err := compact.Fates(messages, c.event)
		if diff := cmp.Diff([]compact.Fate{compact.Stayed, compact.Stayed, c.fate}, fates); err != nil || diff != "" {
			t.Errorf("%+v: %v, fates (-want +got):\n%s", c.event, err, diff)
		}
	}
}
