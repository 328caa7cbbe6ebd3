package engine

import (
	"context"

	"github.com/pawlrun/pawl/internal/engine/holder"
	"github.com/pawlrun/pawl/journal"
)

// SendSealed sends a command to the owner of a lease, even if another process drives
// the run by now.
func (e *Engine) SendSealed(ctx context.Context, name string, c journal.Command) error {
	c.At = e.opts.Now().UTC()
	c, err := holder.Seal(name, c)
	if err != nil {
		return err
	}
	_, err = e.deliver(ctx, c, 0, knownSecrets{})
	return err
}
