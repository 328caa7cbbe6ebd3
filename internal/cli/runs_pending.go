package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/view/terminal"
	"github.com/pawlrun/pawl/journal"
)

// questionRows returns the question, its reason, its deadline, and how to answer.
func questionRows(q control.Pending, shown journal.Run, now time.Time, pawl string, row func(name, value string)) {
	about, risk := askedAbout(q.Question), ""
	if call, is := q.Call(); is {
		about, risk = terminal.Marked(string(call.Args)), string(call.Risk)
	}
	form, asksInput := q.What.(event.FormAsked)
	if asksInput {
		about = "asks for input"
	}
	row("waits for", fmt.Sprintf("%s %s %s", q.ID, q.Subject, firstLine(about, 300)))
	switch {
	case len(q.Path) > 1:
		row("  in", "run "+q.Run+", by way of "+wayOf(q.Path))
	case q.Run != shown.ID:
		row("  in", "run "+q.Run+", which this one started")
	}
	row("  by", firstLine(q.Rule, 100))
	row("  because", firstLine(terminal.Marked(q.Reason), 200))
	formRows(form, row)
	row("  risk", risk)
	row("  digest", q.Digest)
	for _, line := range runsFiles(q.Question) {
		what, rest, _ := strings.Cut(line, " ")
		row("  "+what, rest)
	}
	if q.Late(now) {
		row("  expires", "at "+clock(*q.ExpiresAt)+", which has passed; '"+pawl+" runs resume "+toResume(shown)+"' continues without it")
		return
	}
	if q.ExpiresAt != nil {
		row("  expires", "at "+clock(*q.ExpiresAt))
	}
	if q.Message {
		row("  answer", fmt.Sprintf("%s runs input %s \"…\" --resume", pawl, q.Run))
		return
	}
	id := strings.TrimPrefix(q.ID, q.Run+"-")
	row("  decide", fmt.Sprintf("%s runs approve %s %s%s, or %s runs reject %s %s --reason \"…\"", pawl, q.Run, id, fieldFlags(form), pawl, q.Run, id))
}

// wayOf returns the names of the runs of a path.
func wayOf(path []control.Step) string {
	names := make([]string, len(path))
	for i, step := range path {
		names[i] = cmp.Or(step.Name, step.Run)
	}
	return strings.Join(names, " > ")
}

// pendingIDs returns the open questions of a run and its descendants. On an error
// it returns none, because only a next step depends on it.
func (s *session) pendingIDs(ctx context.Context, run string) []string {
	pending, err := s.controller.Pending(ctx, run)
	if err != nil {
		return nil
	}
	var ids []string
	for _, p := range pending {
		if !p.Message {
			ids = append(ids, p.ID)
		}
	}
	return ids
}
