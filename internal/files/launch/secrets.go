package launch

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/host/egress"
	"github.com/pawlrun/pawl/internal/host/secret"
)

// secrets fetches the values that the file names, from where it says. One that
// is not there is an error before anything has begun.
func secrets(a *spec.Agent, o Options) ([]secret.Secret, error) {
	getenv := o.getenv()
	var found []secret.Secret
	for _, name := range slices.Sorted(maps.Keys(a.Tools.Secrets)) {
		from := a.Tools.Secrets[name]
		s := secret.Secret{Name: name, Tools: from.Tools}
		for _, h := range from.Hosts {
			s.Hosts = append(s.Hosts, egress.Pattern(h))
		}
		var err error
		if s.Value, err = valueOf(from, a.Dir, getenv); err != nil {
			return nil, fmt.Errorf("tools.secrets.%s: %w", name, err)
		}
		if err := s.Validate(); err != nil {
			return nil, fmt.Errorf("tools.secrets.%s: %w", name, err)
		}
		found = append(found, s)
	}
	return found, nil
}

// Redactor takes out of a text what a run's file declares as secrets. What
// somebody tells a run that nobody drives has to go through it, because no
// driver does that then. Those whose values cannot be had here, so that they
// cannot be looked for, are missing. It is nil where the run has no secrets.
func Redactor(started event.RunStarted) (r *secret.Redactor, missing []string, err error) {
	if started.Spec == "" {
		return nil, nil, nil
	}
	a, err := restore(started)
	if err != nil {
		return nil, nil, err
	}
	known, missing := known(a)
	return secret.NewRedactor(known...), missing, nil
}

// known are the secrets of a file that can be had here, and the names of the others.
func known(a *spec.Agent) (found []secret.Secret, missing []string) {
	for _, name := range slices.Sorted(maps.Keys(a.Tools.Secrets)) {
		value, err := valueOf(a.Tools.Secrets[name], a.Dir, os.Getenv)
		if err != nil {
			missing = append(missing, name)
			continue
		}
		found = append(found, secret.Secret{Name: name, Value: value})
	}
	return found, missing
}

func (o Options) getenv() func(string) string {
	if o.Getenv != nil {
		return o.Getenv
	}
	return os.Getenv
}

// maxSecret bounds the file of a secret: keys and certificates are shorter.
const maxSecret = 64 << 10

func valueOf(from spec.Secret, dir string, getenv func(string) string) (string, error) {
	if from.Env != "" {
		value := getenv(from.Env)
		if value == "" {
			return "", fmt.Errorf("the variable %s is not set", from.Env)
		}
		return value, nil
	}
	path := from.File
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	switch {
	case err != nil:
		return "", err
	case len(content) > maxSecret:
		return "", fmt.Errorf("%s has more than %d KiB", path, maxSecret>>10)
	}
	return strings.TrimRight(string(content), "\r\n"), nil
}

// withVariables adds the secrets that commands may have to their environment.
func withVariables(env []string, secrets []secret.Secret) []string {
	for _, s := range secrets {
		if slices.Contains(s.Tools, shellTool) {
			env = append(env, s.Name+"="+s.Value)
		}
	}
	return env
}
