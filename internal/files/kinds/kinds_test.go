package kinds_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/kinds"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/files/schema"
	"github.com/pawlrun/pawl/internal/machine/agent"
)

// Each file has at most one kind, and each kind has the functions that every surface
// needs.
func TestEachKindIsWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range kinds.All() {
		name := strings.ToLower(k.Name)
		if seen[name] {
			t.Errorf("%s is there twice", k.Name)
		}
		seen[name] = true
		if k.Recognises == nil || k.Check == nil || k.Launch == nil || k.Resume == nil {
			t.Errorf("%s lacks what every kind has", k.Name)
		}
	}
	for _, of := range kinds.Templates() { // each template has a schema
		if name := strings.ToLower(of.Kind.Name); !slices.Contains(schema.Kinds(), name) {
			t.Errorf("the template %s is of a kind without a schema, %s", of.Name, name)
		}
	}
}

// A file without a kind causes an error, and a run of an unknown kind is not treated as
// one of another kind.
func TestWhatIsOfNoKindIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dance.yaml")
	if err := os.WriteFile(path, []byte("kind: Dance\nobjective: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := kinds.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	var problems decode.Errors
	if _, err := f.Check(launch.Options{}); !errors.As(err, &problems) || !strings.Contains(err.Error(), `is "Dance"`) {
		t.Errorf("checked: %v", err)
	}
	if _, _, err := f.Launch("x", launch.Options{}); !errors.As(err, &problems) {
		t.Errorf("launched: %v", err)
	}
	if _, err := kinds.Resume(event.RunStarted{Kind: "Dance", Spec: "kind: Dance"}, launch.Options{}); err == nil || !strings.Contains(err.Error(), `"Dance"`) {
		t.Errorf("resumed: %v", err)
	}
	if _, err := kinds.Resume(event.RunStarted{Kind: agent.Kind}, launch.Options{}); !errors.Is(err, launch.ErrNoFile) {
		t.Errorf("a run of a program's: %v", err)
	}
}
