package sessions

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/journal"
)

// Modes returns the modes of the permissions that a session switches between.
func Modes() []policy.Mode {
	return []policy.Mode{policy.ModeDefault, policy.ModeAcceptEdits, policy.ModePlan}
}

// ModeOf returns the mode of a run after an event, "" if the event does not change it.
func ModeOf(data event.Data) policy.Mode {
	switch d := data.(type) {
	case event.RunStarted:
		return cmp.Or(configOf(d).Policy.Mode, policy.ModeDefault)
	case event.InputReceived:
		return policy.Mode(d.Mode)
	}
	return ""
}

// Choice is what the user of a session has chosen for its next run. The journal keeps it in
// a note, because an ended run never changes.
type Choice struct {
	// Mode is the mode of the permissions and Model the model, "" for those of the run
	// before.
	Mode  policy.Mode `json:"mode,omitempty"`
	Model string      `json:"model,omitempty"`
	// Compact shortens the conversation before the first request of the run.
	Compact bool `json:"compact,omitempty"`
	// After is the run that the next one continues, "" for none: the choice ends with it.
	After string `json:"after,omitempty"`
}

// kept is how long a choice, and the script of a command, are kept.
const kept = 90 * 24 * time.Hour

// Choose changes what the user of a session has chosen for its next run.
func (h *Host) Choose(ctx context.Context, id string, change func(*Choice)) error {
	newest, err := h.newest(ctx, id)
	if err != nil {
		return err
	}
	note, c, err := h.chosen(ctx, id, newest.ID)
	if err != nil {
		return err
	}
	change(&c)
	body, err := json.Marshal(c)
	if err == nil {
		err = h.Store.Amend(ctx, note, body)
	}
	if err != nil {
		return fmt.Errorf("sessions: keep a choice: %w", err)
	}
	return nil
}

// newest returns the newest run of a session, the zero value for a session without runs.
func (h *Host) newest(ctx context.Context, id string) (journal.Run, error) {
	chain, err := Chain(ctx, h.Store, id)
	if errors.Is(err, journal.ErrNotFound) {
		return journal.Run{}, nil
	}
	if err != nil {
		return journal.Run{}, err
	}
	return chain[len(chain)-1].Run, nil
}

// chosen returns the choice for the run after newest, and the number of the note that
// keeps it.
func (h *Host) chosen(ctx context.Context, id, newest string) (note int64, c Choice, err error) {
	now := time.Now()
	n, _, err := h.Store.Note(ctx, journal.Note{Key: "session " + id, At: now, Expires: now.Add(kept), Body: []byte("{}")})
	if err == nil {
		err = json.Unmarshal(n.Body, &c)
	}
	if err != nil {
		return 0, c, fmt.Errorf("sessions: read the choices of session %s: %w", id, err)
	}
	if c.After != newest {
		c = Choice{After: newest}
	}
	return n.ID, c, nil
}

// Chosen returns what the user of a session has chosen for its next run.
func (h *Host) Chosen(ctx context.Context, id string) (Choice, error) {
	newest, err := h.newest(ctx, id)
	if err != nil {
		return Choice{}, err
	}
	_, c, err := h.chosen(ctx, id, newest.ID)
	return c, err
}

// Settings returns the mode and the model of a session now: what its user has chosen, else
// those of its newest run.
func (h *Host) Settings(ctx context.Context, id string) (Choice, error) {
	c, err := h.Chosen(ctx, id)
	if err != nil || c.After == "" {
		return c, err
	}
	now, err := h.settingsOf(ctx, c.After)
	c.Mode, c.Model = cmp.Or(c.Mode, now.mode), cmp.Or(c.Model, now.model)
	return c, err
}

// settings are what the runs of a session have from the run before.
type settings struct {
	mode  policy.Mode
	model string
	// granted are what a person allowed or denied for the session.
	granted []event.Permission
}

// settingsOf returns the settings of a run at its end.
func (h *Host) settingsOf(ctx context.Context, run string) (s settings, err error) {
	for e, err := range drive.AsStored(ctx, h.Store, run, event.TypeRunStarted, event.TypeInputReceived, event.TypePermissionAdded) {
		if err != nil {
			return s, err
		}
		switch d := e.Data.(type) {
		case event.RunStarted:
			c := configOf(d)
			if s.granted = c.Policy.Granted; len(c.Targets) > 0 {
				s.model = c.Targets[0].Model
			}
		case event.PermissionAdded:
			if !slices.Contains(s.granted, d.Permission) {
				s.granted = append(s.granted, d.Permission)
			}
		}
		s.mode = cmp.Or(ModeOf(e.Data), s.mode)
	}
	return s, nil
}

// Switch changes the mode of the permissions of a session: of the run that works, and of
// those after it.
func (h *Host) Switch(ctx context.Context, id string, mode policy.Mode) error {
	if err := h.Choose(ctx, id, func(c *Choice) { c.Mode = mode }); err != nil {
		return err
	}
	newest, err := h.newest(ctx, id)
	// A run that waits for a message would take the change for it.
	if err != nil || newest.ID == "" || newest.State == journal.Ended || newest.Detail == string(event.ParkInput) {
		return err
	}
	_, err = h.Controller.Send(ctx, newest, journal.Command{Kind: journal.Input, Run: newest.ID, Mode: string(mode), By: h.User.Name, Principal: h.User})
	if errors.Is(err, journal.ErrEnded) {
		return nil
	}
	return err
}

// configOf returns the configuration of an agent's run, the zero value for another run.
func configOf(d event.RunStarted) agent.Config {
	var c agent.Config
	if json.Unmarshal(d.Config, &c) != nil {
		return agent.Config{}
	}
	return c
}
