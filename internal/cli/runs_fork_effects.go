package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/journal"
)

// effectsLeft is what a dry run of a fork prints as JSON: what the fork would not undo.
type effectsLeft struct {
	From      string        `json:"from"`
	Seq       int64         `json:"seq"`
	Requested int64         `json:"requested"`
	Effects   []view.Effect `json:"effects"`
}

// showEffects lists what a run did after the event at which a fork would begin.
func (s *session) showEffects(ctx context.Context, r journal.Run, f *forkFlags) error {
	b, err := s.engine.Branch(ctx, r.ID, f.seq)
	if errors.Is(err, drive.ErrNoSuchEvent) {
		return usagef("run %s has no event %d; it has 1 to %d", r.ID, f.seq, r.Seq)
	}
	if err != nil {
		return err
	}
	left, err := s.engine.Past().EffectsAfter(ctx, r.ID, b.Seq)
	if err != nil {
		return err
	}
	if f.json {
		return s.app.printJSON(effectsLeft{r.ID, b.Seq, b.Requested, append([]view.Effect{}, left...)})
	}
	if len(left) == 0 {
		return s.app.printf("a fork shares run %s up to event %d; after it no file was written, no command ran and nothing was sent\n", r.ID, b.Seq)
	}
	return s.app.printf("a fork shares run %s up to event %d; what it did after that stays done:\n%s", r.ID, b.Seq, effectLines(left))
}

// effectLines returns a line for each effect.
func effectLines(all []view.Effect) string {
	var b strings.Builder
	for _, f := range all {
		fmt.Fprintf(&b, "  event %d, %s: %s", f.Seq, f.Kind, harmless(f.Name))
		if len(f.Files) > 0 {
			fmt.Fprintf(&b, "; writes %s", harmless(strings.Join(f.Files, ", ")))
		}
		if len(f.Hosts) > 0 {
			fmt.Fprintf(&b, "; reaches %s", harmless(strings.Join(f.Hosts, ", ")))
		}
		switch f.State {
		case view.Failed:
			b.WriteString(" (failed)")
		case view.Running:
			b.WriteString(" (perhaps done)")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// commands returns the commands with which the fork begins: its limits and then its
// message.
func (f *forkFlags) commands() (commands []journal.Command, err error) {
	for _, pair := range f.limits {
		setting, text, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, usagef("--limit is %q; it must be SETTING=VALUE", pair)
		}
		value, err := limitValue(setting, text)
		if err != nil {
			return nil, err
		}
		commands = append(commands, journal.Command{Kind: journal.Raise, Setting: setting, Value: value})
	}
	if f.message != "" {
		commands = append(commands, journal.Command{Kind: journal.Input, Text: f.message})
	}
	return commands, nil
}

// sendToFork sends commands to a new fork. If one is refused, the fork is deleted.
func (s *session) sendToFork(ctx context.Context, id string, commands []journal.Command) error {
	if len(commands) == 0 {
		return nil
	}
	row, err := s.store.Run(ctx, id)
	for _, c := range commands {
		if err == nil {
			_, err = s.send(ctx, row, c)
		}
	}
	if err != nil {
		return cmp.Or(s.store.Delete(ctx, id), err)
	}
	return nil
}
