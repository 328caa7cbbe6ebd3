package cli

import (
	"context"
	"errors"

	"github.com/pawlrun/pawl/internal/files/kinds"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/journal"
)

// prepareContinued creates a new run from an ended one, with the same file, tools,
// models and conversation.
func (a *app) prepareContinued(ctx context.Context, from string, args []string, o launch.Options) (*launched, error) {
	input, err := a.task(args)
	if err != nil {
		return nil, err
	}
	if len(o.Vars) > 0 {
		return nil, usagef("--var cannot go with --continue: the prompt of the ended run stays as it is")
	}
	s, err := a.open(ctx, toWrite)
	if err != nil {
		return nil, err
	}
	l, err := s.continued(ctx, from, input, o)
	if err != nil {
		s.close()
		return nil, err
	}
	return l, nil
}

func (s *session) continued(ctx context.Context, from, input string, o launch.Options) (*launched, error) {
	r, err := s.find(ctx, from)
	if err != nil {
		return nil, err
	}
	if r.State != journal.Ended {
		return nil, usagef("run %s has not ended (%s); %s", r.ID, stateText(r), s.resumeCommand(ctx, r))
	}
	started, env, err := kinds.Continue(ctx, s.store, r.ID, input, o)
	switch {
	case errors.Is(err, launch.ErrMessageNeeded):
		return nil, usagef("run %s ends with an answer of the model, so a raised limit alone is not enough; give a new message as well", r.ID)
	case errors.Is(err, launch.ErrNothingNew):
		return nil, usagef("run %s has nothing to continue with; give a new message, or, where it was stopped by a limit, raise it with --max-cycles, --budget, --timeout or --limit", r.ID)
	case errors.Is(err, journal.ErrCorrupt):
		return nil, failure(err)
	case err != nil:
		return nil, usageError(err)
	}
	started.Principal = itsUser()
	return &launched{session: s, started: started, env: env}, nil
}
