package acpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/coder/acp-go-sdk"

	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/internal/sessions"
)

// modelOption is the option that chooses the model.
const modelOption acp.SessionConfigId = "model"

// modes returns the modes of a session's permissions.
func modes(now policy.Mode) *acp.SessionModeState {
	about := map[policy.Mode]string{
		policy.ModeDefault: "The rules of the agent file", policy.ModeAcceptEdits: "Files of the workspace are written without a question",
		policy.ModePlan: "Nothing is changed",
	}
	state := &acp.SessionModeState{CurrentModeId: acp.SessionModeId(cmp.Or(now, policy.ModeDefault))}
	for _, m := range sessions.Modes() {
		state.AvailableModes = append(state.AvailableModes, acp.SessionMode{Id: acp.SessionModeId(m), Name: string(m), Description: acp.Ptr(about[m])})
	}
	return state
}

// SetSessionMode implements [acp.Agent]. The mode holds from the next call of a run that
// works, and for the runs after it.
func (s *Server) SetSessionMode(ctx context.Context, r acp.SetSessionModeRequest) (acp.SetSessionModeResponse, error) {
	if _, err := s.session(r.SessionId); err != nil {
		return acp.SetSessionModeResponse{}, err
	}
	mode := policy.Mode(r.ModeId)
	if !slices.Contains(sessions.Modes(), mode) {
		return acp.SetSessionModeResponse{}, invalid(fmt.Errorf("there is no mode %q", r.ModeId))
	}
	return acp.SetSessionModeResponse{}, s.Host.Switch(ctx, string(r.SessionId), mode)
}

// SetSessionConfigOption implements [acp.Agent]: the model of the runs from the next one on.
func (s *Server) SetSessionConfigOption(ctx context.Context, r acp.SetSessionConfigOptionRequest) (acp.SetSessionConfigOptionResponse, error) {
	if r.ValueId == nil || r.ValueId.ConfigId != modelOption {
		return acp.SetSessionConfigOptionResponse{}, invalid(fmt.Errorf("the only option is %s", modelOption))
	}
	o, err := s.session(r.ValueId.SessionId)
	if err != nil {
		return acp.SetSessionConfigOptionResponse{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	model := string(r.ValueId.Value)
	if !slices.Contains(o.models, model) {
		return acp.SetSessionConfigOptionResponse{}, invalid(fmt.Errorf("there is no model %q to choose", model))
	}
	if err := s.Host.Choose(ctx, string(r.ValueId.SessionId), func(c *sessions.Choice) { c.Model = model }); err != nil {
		return acp.SetSessionConfigOptionResponse{}, err
	}
	o.model = model
	return acp.SetSessionConfigOptionResponse{ConfigOptions: o.options()}, nil
}

// settings sets the models that the editor's user may choose in a session. model is that of
// the session, "" for that of the file.
func (s *Server) settings(o *opened, model string) {
	var own []string
	if f, err := s.Host.File(); err == nil {
		if a, err := spec.ParseAgent(f.Path, f.Text, s.Host.Launch.Checks()); err == nil {
			own = a.Chain()
		}
	}
	if chosen := s.Host.Launch.Model; chosen != "" {
		own = append([]string{chosen}, own...)
	}
	config := s.Host.Launch.Config
	all := slices.Concat([]string{model}, own, slices.Sorted(maps.Values(config.Classes)), slices.Sorted(maps.Values(config.Roles)), slices.Sorted(maps.Keys(config.Models)))
	o.models = nil
	for _, m := range all {
		if m != "" && !slices.Contains(o.models, m) {
			o.models = append(o.models, m)
		}
	}
	if len(o.models) > 0 {
		o.model = o.models[0]
	}
}

// options returns the options of a session, none if there is no model to choose.
func (o *opened) options() []acp.SessionConfigOption {
	if len(o.models) == 0 {
		return nil
	}
	var choices acp.SessionConfigSelectOptionsUngrouped
	for _, m := range o.models {
		choices = append(choices, acp.SessionConfigSelectOption{Name: m, Value: acp.SessionConfigValueId(m)})
	}
	option := acp.NewSessionConfigOptionSelect(acp.SessionConfigValueId(o.model), acp.SessionConfigSelectOptions{Ungrouped: &choices})
	option.Select.Id, option.Select.Name, option.Select.Category = modelOption, "Model", acp.Ptr(acp.SessionConfigOptionCategoryModel)
	return []acp.SessionConfigOption{option}
}

// compactCommand is the command that shortens the conversation.
const compactCommand = "compact"

// commands returns the update with the commands that a message may be.
func commands() acp.SessionUpdate {
	return acp.SessionUpdate{AvailableCommandsUpdate: &acp.SessionAvailableCommandsUpdate{AvailableCommands: []acp.AvailableCommand{
		{Name: compactCommand, Description: "Shorten the conversation before the next message is answered"},
	}}}
}

// announcer writes frames, and sends the commands of a session after the answer that
// creates it: an editor does not know the session before.
type announcer struct {
	io.Writer
	s *Server
}

// Write implements [io.Writer]. The connection writes whole frames, one after another.
func (a announcer) Write(frame []byte) (int, error) {
	n, err := a.Writer.Write(frame)
	a.s.unanswered.wrote(frame)
	if err == nil {
		a.s.created(frame)
	}
	return n, err
}

// created sends the commands of the session that a frame says was created.
func (s *Server) created(frame []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.creating) == 0 {
		return
	}
	var f struct {
		Result struct {
			SessionID acp.SessionId `json:"sessionId"`
		} `json:"result"`
	}
	if json.Unmarshal(frame, &f) != nil || !slices.Contains(s.creating, f.Result.SessionID) {
		return
	}
	id := f.Result.SessionID
	s.creating = slices.DeleteFunc(s.creating, func(other acp.SessionId) bool { return other == id })
	s.asking.Go(func() {
		if err := s.update(s.serving, id, commands()); err != nil {
			s.Log.Warn("the commands of a session cannot be sent", "session", id, "error", err)
		}
	})
}
