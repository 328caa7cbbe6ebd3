package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/journal"
)

// watchCommand shows a live line for each running root, and decides by key.
func (a *app) watchCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "watch [RUN]",
		Short: "Watch the runs that go on, and decide by key",
		Long: `Shows one live line for each run that goes on and that no other run started, or for RUN alone. A line of a run that has
ended stays above them. A question is shown whole: a approves it, r rejects it with a reason, j and k go to the next
and the previous question, q leaves. Without a terminal it prints a line for each change, until the runs have ended.`,
		Example: "  pawl runs watch\n  pawl runs watch k7x2",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := a.open(c.Context(), toWrite)
			if err != nil {
				return err
			}
			defer s.close()
			w := watch{session: s, seen: map[string]*drive.Viewed{}, said: map[string]string{}}
			if len(args) == 1 {
				r, err := s.find(c.Context(), args[0])
				if err != nil {
					return err
				}
				w.only = r.ID
			}
			in, isFile := a.in.(*os.File)
			if isFile && screenOf(a.in, os.Getenv).terminal && screenOf(a.out, os.Getenv).terminal {
				return w.show(c.Context(), in)
			}
			return w.print(c.Context())
		},
	}
}

// watchPause is the time between two looks at the journal.
const watchPause = 300 * time.Millisecond

// settling is how long a question is on the screen before a key decides it.
const settling = 400 * time.Millisecond

// watch shows the runs of a journal as they go on.
type watch struct {
	session *session
	// only is the one run to watch, "" for all roots.
	only string
	// seen holds the views of the watched runs, and said the last line of each.
	seen map[string]*drive.Viewed
	said map[string]string
	// asked are the open questions of all watched runs, and shown the id of the one on
	// the screen, since a time.
	asked []control.Pending
	shown string
	since time.Time
	// whole reports that the screen has all of it, so that it can be approved.
	whole bool
	// typing is the reason of a rejection in progress, nil for none; hint is the result of
	// the last key.
	typing *string
	hint   string
}

// watched is a run with its line.
type watched struct {
	row  journal.Run
	line string
}

// read returns the watched runs, and reads their open questions.
func (w *watch) read(ctx context.Context) ([]watched, error) {
	rows, err := w.rows(ctx)
	if err != nil {
		return nil, err
	}
	statuses, err := w.session.controller.RunStatuses(ctx, rows)
	if err != nil {
		return nil, err
	}
	w.asked = nil
	var all []watched
	for i, row := range rows {
		line, err := w.line(ctx, statuses[i])
		if err != nil {
			return nil, err
		}
		all = append(all, watched{row, line})
		if row.State == journal.Ended {
			continue
		}
		pending, err := w.session.controller.Pending(ctx, row.ID)
		if err != nil {
			return nil, err
		}
		w.asked = append(w.asked, pending...)
	}
	if i := w.at(); i < 0 && len(w.asked) > 0 {
		w.choose(0)
	} else if len(w.asked) == 0 {
		w.shown, w.typing = "", nil
	}
	return all, nil
}

// rows returns the rows of the runs that go on, and of those that have ended since the
// last look.
func (w *watch) rows(ctx context.Context) ([]journal.Run, error) {
	if w.only != "" {
		row, err := w.session.store.Run(ctx, w.only)
		return []journal.Run{row}, err
	}
	rows, err := w.session.store.Runs(ctx, journal.Filter{Roots: true, States: slices.DeleteFunc(journal.States(), func(s journal.State) bool { return s == journal.Ended })})
	if err != nil {
		return nil, err
	}
	for id := range w.seen {
		if slices.ContainsFunc(rows, func(r journal.Run) bool { return r.ID == id }) {
			continue
		}
		row, err := w.session.store.Run(ctx, id)
		if errors.Is(err, journal.ErrNotFound) { // it was removed
			delete(w.seen, id)
			continue
		}
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// line returns the line of a run: its state, its cycle, its cost and what it does.
func (w *watch) line(ctx context.Context, r control.RunStatus) (string, error) {
	v := w.seen[r.ID]
	if v == nil {
		v = &drive.Viewed{}
		w.seen[r.ID] = v
	}
	if err := v.Read(ctx, w.session.store, r.ID); err != nil {
		return "", err
	}
	words := []string{r.ID, firstLine(r.Name, nameRoom), stateNow(r)}
	if at := v.Position(); at.Cycle > 0 && r.State != journal.Ended {
		words = append(words, view.Position(at))
	}
	if cost := v.Run().Cost; cost != nil {
		words = append(words, fmt.Sprintf("USD %.4f", cost.USD))
	}
	if doing := doingOf(v); doing != "" && r.State != journal.Ended {
		words = append(words, doing)
	}
	return strings.Join(slices.DeleteFunc(words, func(s string) bool { return s == "" }), "  "), nil
}

// doingOf returns what a run does now: its last call, step or iteration in progress.
func doingOf(v *drive.Viewed) string {
	for _, n := range slices.Backward(v.Entries()) {
		if (n.State == view.Running || n.State == view.Waiting) && n.Kind != view.Cycle && n.Name != "" {
			return "→ " + firstLine(cmp.Or(n.Name, n.Line), 60)
		}
	}
	return ""
}

// at returns the place of the shown question, -1 if it is not open any more.
func (w *watch) at() int {
	return slices.IndexFunc(w.asked, func(p control.Pending) bool { return p.Run+p.ID+p.Digest == w.shown })
}

// choose shows another question.
func (w *watch) choose(i int) {
	p := w.asked[max(0, min(i, len(w.asked)-1))]
	if id := p.Run + p.ID + p.Digest; id != w.shown {
		w.shown, w.since, w.typing = id, time.Now(), nil
	}
}

// key handles a key, and reports whether it leaves.
func (w *watch) key(ctx context.Context, key byte) (leaves bool) {
	const ctrlC, esc, enter, backspace = 3, 27, '\r', 127
	if w.shown != "" {
		w.hint = ""
	}
	if w.typing != nil {
		switch {
		case key == esc || key == ctrlC:
			w.typing = nil
		case key == enter && strings.TrimSpace(*w.typing) != "":
			w.decide(ctx, journal.Reject, strings.ToValidUTF8(*w.typing, "\uFFFD"))
			w.typing = nil
		case key == backspace && *w.typing != "":
			r := []rune(*w.typing)
			*w.typing = string(r[:len(r)-1])
		case key >= ' ' && key != backspace:
			*w.typing += string([]byte{key})
		}
		return false
	}
	i := w.at()
	switch {
	case key == 'q' || key == ctrlC:
		return true
	case i < 0:
	case key == 'j':
		w.choose(i + 1)
	case key == 'k':
		w.choose(i - 1)
	case key == 'a' && w.whole:
		w.decide(ctx, journal.Approve, "")
	case key == 'r' && w.takes(event.ApprovalRejected):
		w.typing = new(string)
	}
	return false
}

// takes reports whether the shown question can be decided here in some way now.
func (w *watch) takes(kind event.ApprovalKind) bool {
	i := w.at()
	if i < 0 || time.Since(w.since) < settling {
		return false
	}
	if !slices.Contains(w.asked[i].Takes, kind) {
		w.hint = "it cannot be decided by this key: " + w.session.app.invocation() + " runs show " + w.asked[i].Run
		return false
	}
	return true
}

// decide decides the shown question, if it is still the one that was shown.
func (w *watch) decide(ctx context.Context, kind journal.CommandKind, reason string) {
	how := event.ApprovalApproved
	if kind == journal.Reject {
		how = event.ApprovalRejected
	}
	if !w.takes(how) {
		return
	}
	p := w.asked[w.at()]
	err := w.session.decidedByPerson(ctx)
	var now control.Pending
	if err == nil {
		var row journal.Run
		if row, err = w.session.store.Run(ctx, p.Run); err == nil {
			if now, err = w.session.pendingQuestion(ctx, row, p.ID); err == nil && now.Digest != p.Digest {
				err = errors.New("the question has changed; nothing was decided")
			}
		}
		if err == nil {
			_, err = w.session.send(ctx, row, journal.Command{Kind: kind, CallID: p.ID, Text: reason})
		}
		if err == nil && !control.Alive(row, time.Now()) {
			w.hint = w.session.resumeCommand(ctx, row)
		}
	}
	if err != nil {
		w.hint = firstLine(control.Plain(err), 200)
	}
}
