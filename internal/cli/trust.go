package cli

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/host/guidance"
)

// trust returns what the user trusts, as kept in the state directory.
func trust(all bool) (guidance.Trust, error) {
	dir, err := launch.StateDir()
	return guidance.Trust{Dir: dir, All: all}, err
}

// guide returns the instructions and skills of a working tree that the user trusts. It
// asks the user if there is a terminal.
func (a *app) guide(ctx context.Context, p *printer, dir string, all bool) (guidance.Found, error) {
	t, err := trust(all)
	if err != nil {
		return guidance.Found{}, err
	}
	found, err := guidance.In(dir)
	if err != nil {
		return guidance.Found{}, err
	}
	var ask func(context.Context, guidance.Question) (guidance.Answer, error)
	if screenOf(a.in, os.Getenv).terminal && p.screen.terminal {
		ask = func(ctx context.Context, q guidance.Question) (guidance.Answer, error) { return a.asksTrust(ctx, p, q) }
	}
	return t.Use(ctx, found, ask)
}

// asksTrust asks the person at the terminal whether to trust something of a tree.
func (a *app) asksTrust(ctx context.Context, p *printer, q guidance.Question) (guidance.Answer, error) {
	p.line(plain, "The tree "+onOneLine(q.Root)+" has these texts for the agent:")
	for _, line := range q.What {
		p.line(plain, "  "+firstLine(line, 160))
	}
	p.line(plain, q.Why)
	keys := a.typed()
	keys.begin()
	defer keys.end()
	p.ask(bold, "Use them? You are asked again when they change. [y/N] ")
	line, err := keys.line(ctx)
	if errors.Is(err, errNoAnswer) {
		p.withdraw("")
		return guidance.Missing, nil
	}
	if err != nil {
		return guidance.Missing, err
	}
	p.answered()
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return guidance.Yes, nil
	}
	return guidance.No, nil
}
