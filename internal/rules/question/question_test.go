package question_test

import (
	"slices"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/question"
)

// A decision is valid once, for the same question, under the same policy, and before
// the expiry.
func TestADecisionCountsOnceAndAboutWhatWasAsked(t *testing.T) {
	until := time.Unix(1000, 0)
	for kind, asks := range map[event.QuestionKind]event.Asking{
		event.QuestionCall:   event.ToolPendingApproval{CallID: "q", Digest: "d", Policy: "p", ExpiresAt: &until},
		event.QuestionReview: event.ReviewRequested{LoopID: "q", Digest: "d", ExpiresAt: &until},
	} {
		q := asks.Question()
		yes := event.Resolution{ID: "q", Of: kind, Kind: event.ApprovalApproved, Digest: "d", Policy: q.Policy, Approver: "ann", At: until.Add(-1)}
		with := func(change func(*event.Resolution)) event.Data {
			r := yes
			change(&r)
			return asks.Resolved(r)
		}
		no := func(r *event.Resolution) { r.Kind = event.ApprovalRejected }
		for name, tt := range map[string]struct {
			events []event.Data
			want   event.ApprovalKind
			open   bool
		}{
			"nothing was asked":      {[]event.Data{asks.Resolved(yes)}, "", false},
			"asked":                  {[]event.Data{asks}, "", true},
			"decided":                {[]event.Data{asks, asks.Resolved(yes)}, event.ApprovalApproved, false},
			"decided twice":          {[]event.Data{asks, asks.Resolved(yes), with(no)}, event.ApprovalApproved, false},
			"another was decided":    {[]event.Data{asks, with(func(r *event.Resolution) { r.ID = "other" })}, "", true},
			"about something else":   {[]event.Data{asks, with(func(r *event.Resolution) { r.Digest = "e" })}, "", true},
			"too late":               {[]event.Data{asks, with(func(r *event.Resolution) { r.At = until })}, "", true},
			"nobody decided in time": {[]event.Data{asks, with(func(r *event.Resolution) { r.Kind, r.At = event.ApprovalExpired, until })}, event.ApprovalExpired, false},
			"taken back":             {[]event.Data{asks, with(func(r *event.Resolution) { r.Kind, r.At = event.ApprovalCancelled, until })}, event.ApprovalCancelled, false},
			"asked again":            {[]event.Data{asks, asks.Resolved(yes), asks}, "", true},
			"not needed any more":    {[]event.Data{asks, event.ToolResult{CallID: "q"}}, "", false},
		} {
			t.Run(string(kind)+" "+name, func(t *testing.T) {
				var l question.List
				for _, d := range tt.events {
					l.Apply(d)
				}
				var got event.ApprovalKind
				if by := l.Of("q").Decided(); by != nil {
					got = by.Kind
				}
				if got != tt.want || l.Asks() != tt.open || (len(l.Open()) == 1) != tt.open {
					t.Errorf("it is decided as %q, open: %v", got, l.Open())
				}
			})
		}
		if r := asks.Resolved(yes).Resolution(); r.ID != yes.ID || r.Of != yes.Of || r.Kind != yes.Kind || r.Digest != yes.Digest || r.Approver != yes.Approver {
			t.Errorf("a decision on a %s comes back as %+v", kind, r)
		}
	}
}

func TestQuestionsAreListedInTheOrderInWhichTheyWereAsked(t *testing.T) {
	var l question.List
	for _, id := range []string{"c", "a", "b"} {
		l.Ask(event.ReviewRequested{LoopID: id}.Question())
	}
	l.Of("a").Void()
	var ids []string
	for _, q := range l.Open() {
		ids = append(ids, q.ID)
	}
	if !slices.Equal(ids, []string{"c", "b"}) {
		t.Errorf("these are open: %q", ids)
	}
}
