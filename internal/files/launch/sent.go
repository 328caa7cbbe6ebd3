package launch

import (
	"fmt"
	"os"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/files/spec"
)

// sent prepares a run of an agent file that somebody sent as a text, see
// [spec.Options]. Scripts that it names are read from o.Dir and nowhere else.
func sent(f File, input string, o Options) (event.RunStarted, engine.Env, error) {
	a, err := spec.ParseAgent(f.Path, f.Text, o.checksOf(f))
	if err != nil {
		return event.RunStarted{}, engine.Env{}, err
	}
	a.File = ""
	pinned, err := a.Text()
	if err != nil {
		return event.RunStarted{}, engine.Env{}, err
	}
	return prepare(a, "", pinned, input, o)
}

// ConfineScript refuses the model scripted/FILE whose file is not inside a
// directory, also where a link in it leads outside.
func ConfineScript(dir, model string) error {
	name, ok := strings.CutPrefix(model, "scripted/")
	if !ok {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("launch: %w", err)
	}
	defer root.Close()
	if _, err := root.Stat(name); err != nil {
		return fmt.Errorf("the script %s is not a file of the agents directory", name)
	}
	return nil
}
