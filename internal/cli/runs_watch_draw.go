package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/pawlrun/pawl/internal/cli/live"
	"github.com/pawlrun/pawl/internal/view/terminal"
	"github.com/pawlrun/pawl/journal"
)

// print writes a line for each change until the watched runs have ended.
func (w *watch) print(ctx context.Context) error {
	for {
		all, err := w.read(ctx)
		if err != nil {
			return err
		}
		going := false
		for _, r := range all {
			stands := stateText(r.row)
			going = going || r.row.State != journal.Ended
			if w.said[r.row.ID] == stands {
				continue
			}
			w.said[r.row.ID] = stands
			if err := w.session.app.printf("%s\n", r.line); err != nil {
				return err
			}
		}
		if !going {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(watchPause):
		}
	}
}

// show draws the lines until a key ends it, or until the one watched run has ended.
func (w *watch) show(ctx context.Context, in *os.File) error {
	state, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	defer func() { _ = term.Restore(int(in.Fd()), state) }()
	region := live.NewRegion(w.session.app.out)
	defer func() { _ = region.Frame(nil, nil) }()
	keys := make(chan byte)
	go func() { // it reads until the process ends: a read of a terminal cannot be cancelled
		var b [1]byte
		for {
			if n, err := in.Read(b[:]); err != nil || n == 0 {
				close(keys)
				return
			}
			select {
			case keys <- b[0]:
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		all, err := w.read(ctx)
		if err != nil {
			return err
		}
		over, rows := w.frame(all)
		if err := region.Frame(over, rows); err != nil {
			return err
		}
		if w.only != "" && len(all) == 1 && all[0].row.State == journal.Ended {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case key, more := <-keys:
			if !more || w.key(ctx, key) {
				return nil
			}
		case <-time.After(watchPause):
		}
	}
}

// frame returns the lines of the runs that have ended, and the rows of the region.
func (w *watch) frame(all []watched) (over, rows []string) {
	screen := screenOf(w.session.app.out, os.Getenv)
	width, height := max(screen.width()-1, 20), 24
	if f, is := w.session.app.out.(*os.File); is {
		if _, h, err := term.GetSize(int(f.Fd())); err == nil && h > 0 {
			height = h
		}
	}
	for _, r := range all {
		if r.row.State == journal.Ended {
			over = append(over, r.line)
			delete(w.seen, r.row.ID)
			continue
		}
		rows = append(rows, clip(r.line, width))
	}
	if most := height / 3; len(rows) > most {
		rows = append(rows[:most], fmt.Sprintf("… and %d more", len(rows)-most))
	}
	if len(rows) == 0 {
		rows = append(rows, "no run goes on")
	}
	var question []string
	question, w.whole = w.question(width, height-len(rows)-3)
	rows = append(rows, question...)
	return over, append(rows, clip(w.help(), width))
}

// question returns the shown question in rows, and reports whether they have all of it.
func (w *watch) question(width, most int) (rows []string, whole bool) {
	i := w.at()
	if i < 0 {
		return nil, false
	}
	p := w.asked[i]
	text := askedAbout(p.Question)
	if call, is := p.Call(); is {
		text = terminal.Marked(string(call.Args))
	}
	rows = append(rows, clip(fmt.Sprintf("? %d of %d: %s of run %s", i+1, len(w.asked), harmless(p.Subject), p.Run), width))
	for line := range strings.SplitSeq(harmless(text), "\n") {
		rows = append(rows, chunks(line, width-2)...)
	}
	for _, line := range runsFiles(p.Question) {
		rows = append(rows, "  "+clip(line, width-2))
	}
	if p.Reason != "" {
		rows = append(rows, "  "+clip(harmless(terminal.Marked(p.Reason)), width-2))
	}
	if len(rows) > most {
		return append(rows[:max(most-1, 1)], clip("  … too long for this window: "+w.session.app.invocation()+" runs show "+p.Run, width)), false
	}
	return rows, true
}

// chunks splits a line into rows of a width.
func chunks(line string, width int) (rows []string) {
	row := ""
	for _, r := range line {
		if columns(row+string(r)) > width {
			rows, row = append(rows, "  "+row), ""
		}
		row += string(r)
	}
	return append(rows, "  "+row)
}

// help returns the last row: what is typed, the result of the last key, or the keys.
func (w *watch) help() string {
	switch {
	case w.typing != nil:
		return "reason: " + harmless(*w.typing) + "▏ (Enter rejects, Esc goes back)"
	case w.hint != "":
		return w.hint
	case w.shown != "" && w.whole:
		return "a approve · r reject · j k other questions · q leave"
	case w.shown != "":
		return "r reject · j k other questions · q leave"
	}
	return "q leave"
}
