package launch_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/models"
)

// A run keeps the rules that it began with. These protect the journal at its earlier
// path.
func TestARunIsNotResumedWhereItsToolsMayWriteTheJournal(t *testing.T) {
	o := options(t)
	elsewhere := filepath.Join(t.TempDir(), "runs.db")
	for _, tt := range []struct {
		began, now string
		refused    bool
	}{
		{"runs.db", "runs.db", false},
		{"runs.db", elsewhere, false},
		{"runs.db", "moved.db", true},
		{elsewhere, "runs.db", true},
		{elsewhere, ".pawl/runs.db", false},
		{elsewhere, "link/runs.db", true},
	} {
		if err := os.MkdirAll(filepath.Join(o.Workspace, "data"), 0o700); err != nil {
			t.Fatal(err)
		}
		_ = os.Symlink("data", filepath.Join(o.Workspace, "link"))
		at := func(name string) string {
			if filepath.IsAbs(name) {
				return name
			}
			return filepath.Join(o.Workspace, name)
		}
		o.Journal = at(tt.began)
		started, _, env := start(t, file(t, ""), o)
		_ = env.Close()
		env, err := launch.Environment(started, launch.Options{Host: launch.Host{Journal: at(tt.now)}})
		if env.Close != nil {
			_ = env.Close()
		}
		if got := err != nil && strings.Contains(err.Error(), "write the journal"); got != tt.refused || err != nil && !got {
			t.Errorf("from %s to %s: %v", tt.began, tt.now, err)
		}
	}
}

// A writer of the config file decides where the next run's credentials are sent. A
// run's rules protect the config file that it began with.
func TestARunIsNotResumedWhereItsToolsMayWriteTheConfigFile(t *testing.T) {
	elsewhere := filepath.Join(t.TempDir(), "config.yaml")
	for _, tt := range []struct {
		began, now, tools string
		refused           bool
	}{
		{"a.yaml", "a.yaml", "[fs.write]", false},
		{"a.yaml", "", "[fs.write]", false},
		{"", "a.yaml", "[fs.write]", true},
		{"a.yaml", "b.yaml", "[shell.exec]", true},
		{"a.yaml", "b.yaml", "[fs.read]", false},
		{"", ".pawl/config.yaml", "[fs.write]", false},
		{"", elsewhere, "[fs.write]", false},
		{"", "link.yaml", "[fs.write]", true},
	} {
		o := options(t)
		if err := os.Symlink(elsewhere, filepath.Join(o.Workspace, "link.yaml")); err != nil {
			t.Fatal(err)
		}
		at := func(name string) models.Config {
			if name != "" && !filepath.IsAbs(name) {
				name = filepath.Join(o.Workspace, name)
			}
			return models.Config{File: name}
		}
		o.Config = at(tt.began)
		started, _, env := start(t, file(t, "tools: {allow: "+tt.tools+"}"), o)
		_ = env.Close()
		env, err := launch.Environment(started, launch.Options{Host: launch.Host{Config: at(tt.now)}})
		if env.Close != nil {
			_ = env.Close()
		}
		if got := err != nil && strings.Contains(err.Error(), "write the config file"); got != tt.refused || err != nil && !got {
			t.Errorf("from %q to %q with %s: %v", tt.began, tt.now, tt.tools, err)
		}
	}
}
