package sessions

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/rules/policy"
)

// commandRun is the name of the runs of commands, which are no sessions.
const commandRun = "!"

// Command runs a command line of the user beside a session: a run of its agent file, with the
// file's rules and sandbox, whose model is a script that calls the shell once. scripts is
// the directory that keeps the scripts.
func (h *Host) Command(ctx context.Context, scripts, dir, line string, mode policy.Mode, ask Ask) (*Turn, error) {
	f, err := h.File()
	if err != nil {
		return nil, err
	}
	args, err := json.Marshal([]any{
		map[string]any{"tool_calls": []any{map[string]any{"name": machine.CommandTool, "arguments": map[string]string{"command": line}}}},
		map[string]string{"text": "done"},
	})
	if err != nil {
		return nil, err
	}
	script := filepath.Join(scripts, fmt.Sprintf("%x.json", sha256.Sum256(args)))
	if err := os.MkdirAll(scripts, 0o700); err != nil {
		return nil, fmt.Errorf("sessions: %w", err)
	}
	if err := os.WriteFile(script, args, 0o600); err != nil {
		return nil, fmt.Errorf("sessions: %w", err)
	}
	prune(scripts, time.Now().Add(-kept))
	o, dress := h.options(ask)
	o.Workspace, o.Model, o.Mode = dir, "scripted/"+script, mode
	o.Tree.Texts, o.Tree.Skills, o.Tree.Notes = nil, nil, nil
	started, env, err := f.Launch("! "+line, o)
	if err != nil {
		return nil, err
	}
	started.Name = commandRun
	t, err := h.start(ctx, engine.NewID(), started, env, dress)
	if err == nil {
		t.Command = true
	}
	return t, err
}

// prune removes the scripts that were last used before a time. A run that is resumed later
// than that has no script.
func prune(scripts string, before time.Time) {
	all, _ := os.ReadDir(scripts)
	for _, s := range all {
		if info, err := s.Info(); err == nil && info.ModTime().Before(before) {
			_ = os.Remove(filepath.Join(scripts, s.Name()))
		}
	}
}
