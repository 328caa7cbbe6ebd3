package server

import (
	"context"
	"errors"
	"math"
	"reflect"
	"strconv"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/files/kinds"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/rules/access"
)

// maySpend rejects an amount in USD that is more than an editor may set: the
// server's --max-budget, or the cap in the run's file if that is higher. An admin
// may set any amount.
func (s *Server) maySpend(ctx context.Context, usd, file float64, pointer string) error {
	most := max(s.maxBudget, file)
	if usd <= most || access.Authorise(principalOf(ctx), access.Admin) == nil {
		return nil
	}
	p := principalOf(ctx)
	return kindForbidden.problem("stay within that, ask an admin, or start the server with a larger --max-budget",
		"%s has the role %s, which may set at most USD %s for this run; %s is more", p.Name, p.Role, dollars(most), dollars(usd)).at(pointer)
}

func dollars(usd float64) string {
	if math.IsInf(usd, 1) {
		return "no limit"
	}
	return strconv.FormatFloat(usd, 'f', -1, 64)
}

// fileCap returns the cap in money of a run's file. A run without a file belongs to
// a program, which sets its limits.
func fileCap(started event.RunStarted) (float64, error) {
	kind, err := kinds.OfRun(started)
	if errors.Is(err, launch.ErrNoFile) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return kind.CapUSD(started.Source, []byte(started.Spec))
}

// mayBranch stops an editor from forking a run with a limit above the editor's
// maximum, which an admin may have set.
func (s *Server) mayBranch(ctx context.Context, b *drive.Branch) error {
	file, err := fileCap(b.Started)
	if err != nil {
		return err
	}
	usd := file
	if m, ok := b.Machine.(machine.Bounded); ok {
		usd = launch.CapUSD(m.Bounds())
	}
	return s.maySpend(ctx, usd, file, "/seq")
}

// mayChange restricts the forks of an editor to the point of the fork, the part of
// the conversation that is sent, messages, limits, and whether the fork runs. The system prompt, the
// model and results decide what a run does, as its file does, and only an admin may
// bring a file.
func (f forking) mayChange(ctx context.Context) error {
	if reflect.DeepEqual(f, forking{Seq: f.Seq, Window: f.Window, Message: f.Message, Limits: f.Limits, Run: f.Run}) {
		return nil
	}
	if err := access.Authorise(principalOf(ctx), access.Admin); err != nil {
		return kindForbidden.problem("fork the run as it is, or ask an admin", "a fork that replaces the model, the system prompt or a result is an admin's: %v", err)
	}
	return nil
}
