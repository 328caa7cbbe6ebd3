package perform

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
)

// Allowed implements [tool.Run].
func (c *toolCall) Allowed(consent string) (allowed, decided bool) {
	return c.Sampled.Allowed(consent)
}

// Sample implements [tool.Run].
func (c *toolCall) Sample(ctx context.Context, s tool.Sampling) (tool.Sampled, error) {
	if allowed, _ := c.Sampled.Allowed(s.Agent); !allowed {
		return tool.Sampled{}, fmt.Errorf("no person has allowed that %s answers", s.Agent)
	}
	most := s.USD
	if s.USD -= c.Sampled.USD(s.Agent); s.USD <= 0 {
		return tool.Sampled{}, usedUp(most)
	}
	input, err := json.Marshal(s)
	if err != nil {
		return tool.Sampled{}, err
	}
	o, err := c.Links.Run(ctx, s.Agent, input)
	switch {
	case err != nil:
		return tool.Sampled{}, err
	case o.Reason == event.ReasonMaxCycles && o.LastOutput != "": // the answer was cut off
		return tool.Sampled{Text: o.LastOutput, Cut: true}, nil
	case o.OK:
		return tool.Sampled{Text: o.FinalOutput}, nil
	case budget.IsMoney(o.Limit) && o.Kind == "":
		return tool.Sampled{}, usedUp(most)
	}
	why := string(o.Reason)
	if o.Error != nil {
		why += ": " + c.Record.Secrets.Text(o.Error.Message)
	}
	return tool.Sampled{}, fmt.Errorf("the model gave no answer: %s", why)
}

// usedUp is the error of a sampling for which the owner's limit has no room.
func usedUp(usd float64) error {
	return fmt.Errorf("the limit of USD %g for the samplings of this server in this run has no room for another one", usd)
}
