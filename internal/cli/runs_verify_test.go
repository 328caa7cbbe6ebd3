package cli

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/sqlite"
)

// listsRemoved is a journal from which a run is removed once it has been listed.
type listsRemoved struct{ journal.Store }

func (s listsRemoved) Runs(ctx context.Context, f journal.Filter) ([]journal.Run, error) {
	rows, err := s.Store.Runs(ctx, f)
	return append([]journal.Run{{ID: "removed"}}, rows...), err
}

func TestARunThatIsRemovedWhileAllAreVerifiedIsNoProblem(t *testing.T) {
	p := greeter(t)
	p.exits(0, "run", "agent.yaml", "hi")
	store, err := sqlite.Open(t.Context(), filepath.Join(p.dir, ".pawl/journal.db"), sqlite.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	s := &session{store: listsRemoved{store}, controller: control.New(listsRemoved{store}, nil)}
	results, err := s.verifyAll(t.Context())
	if err != nil || len(results) != 1 || !results[0].OK {
		t.Errorf("%+v, %v; want the run that is there, and it sound", results, err)
	}
}
