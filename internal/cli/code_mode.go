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
	l.mu.Lock()
	now := cmp.Or(l.mode, l.status.mode, policy.ModeDefault)
	l.mu.Unlock()
	modes := sessions.Modes()
	return l.switchTo(ctx, modes[(slices.Index(modes, now)+1)%len(modes)])
}

// approveMode shows or changes the mode.
func (l *liveChat) approveMode(ctx context.Context, args []string) error {
	if len(args) == 0 {
		l.printer.line(plain, "  mode: "+string(cmp.Or(l.mode, policy.ModeDefault)))
		return nil
	}
	mode := policy.Mode(args[0])
	if !slices.Contains(sessions.Modes(), mode) {
		return usagef("the mode is %q; it can be default, accept-edits or plan", args[0])
	}
	return l.switchTo(ctx, mode)
}

// switchTo changes the mode of the run that works, and of those after it.
func (l *liveChat) switchTo(ctx context.Context, mode policy.Mode) error {
	if err := l.host.Switch(ctx, l.id, mode); err != nil {
		return err
	}
	l.mode = mode
	l.showMode(mode)
	return nil
}

// showMode shows the mode in the status line.
func (l *liveChat) showMode(mode policy.Mode) {
	text := string(mode)
	if mode == policy.ModeDefault {
		text = ""
	}
	l.screen.Send(live.InMode{Text: text})
}
