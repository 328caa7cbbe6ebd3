package cli

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/models"
)

func recordFlag(c *cobra.Command, path *string) {
	c.Flags().StringVar(path, "record", "", "write the models' answers to this script, to play them again with --model scripted/FILE")
}

// recordAnew refuses to overwrite a recording: only a resumed run extends one. It
// also fails if the file cannot be created, before the answers cost money.
func recordAnew(path string) error {
	if path == "" {
		return nil
	}
	if _, err := os.Lstat(path); err == nil {
		return usagef("--record %s: the file is there already and is not overwritten", path)
	}
	dir := filepath.Dir(path)
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return usagef("--record %s: no file can be made in the directory %s: %v", path, dir, err)
	}
	return nil
}

// recording records a run's models. It reports what it could not record at the end.
func (a *app) recording(env perform.Env, path string, config models.Config) perform.Env {
	if path == "" || env.Model == nil {
		return env
	}
	recorder := scripted.NewRecorder(path)
	ofProcess, ofRun := a.credentials(config), env.Secrets
	recorder.Clean(func(turn []byte) []byte {
		turn, _ = ofRun.Redact(turn)
		turn, _ = ofProcess.Redact(turn)
		return turn
	})
	open, done := env.Model, env.Close
	env.Model = func(target string) (llm.Model, string, error) {
		model, name, err := open(target)
		if err != nil {
			return nil, "", err
		}
		return recorder.Wrap(model), name, nil
	}
	env.Close = func() error {
		var err error
		if done != nil {
			err = done()
		}
		return errors.Join(err, recorder.Err())
	}
	return env
}
