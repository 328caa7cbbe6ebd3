package cli

import (
	"cmp"
	"context"
	"slices"

	"github.com/pawlrun/pawl/internal/cli/live"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/internal/sessions"
)

// nextMode changes to the next mode.
func (l *liveChat) nextMode(ctx context.Context) error {
	now, err := l.host.Settings(ctx, l.id)
	if err != nil {
		return err
	}
	modes := sessions.Modes()
	return l.switchTo(ctx, modes[(slices.Index(modes, cmp.Or(now.Mode, policy.ModeDefault))+1)%len(modes)])
}

// approveMode shows or changes the mode.
func (t *chat) approveMode(ctx context.Context, args []string) error {
	if len(args) > 0 {
		mode := policy.Mode(args[0])
		if !slices.Contains(sessions.Modes(), mode) {
			return usagef("the mode is %q; it can be default, accept-edits or plan", args[0])
		}
		if err := t.switchTo(ctx, mode); err != nil {
			return err
		}
	}
	now, err := t.host.Settings(ctx, t.id)
	if err == nil {
		t.print("  mode: %s", cmp.Or(now.Mode, policy.ModeDefault))
	}
	return err
}

// switchTo changes the mode of the run that works, and of those after it.
func (t *chat) switchTo(ctx context.Context, mode policy.Mode) error {
	if err := t.host.Switch(ctx, t.id, mode); err != nil {
		return err
	}
	t.surface.showMode(mode)
	return nil
}

// showMode implements [surface].
func (l *liveChat) showMode(mode policy.Mode) {
	text := string(mode)
	if mode == policy.ModeDefault {
		text = ""
	}
	l.screen.Send(live.InMode{Text: text})
}
