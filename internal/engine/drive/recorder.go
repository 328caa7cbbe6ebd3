package drive

import (
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/result"
)

// Recorder gives what a run brings the form in which its journal keeps it. A driver
// has one for each run. It is safe for concurrent use once it is equipped.
type Recorder struct {
	Secrets Secrets
	Blobs   *Blobs
	// readsOn says that the run has the tool that reads on what was cut.
	readsOn bool
}

// NewRecorder returns a recorder of a run that is kept in a store. Until it is
// equipped it knows no secrets.
func NewRecorder(store journal.Store) *Recorder {
	r := &Recorder{Blobs: NewBlobs(store)}
	r.Blobs.clean = func(m llm.Media) llm.Media { return r.Secrets.Media(m) }
	return r
}

// Equip says which tools the run has, and what is to be taken out of what it
// journals.
func (r *Recorder) Equip(tools *tool.Set, secrets ...*secret.Redactor) {
	r.Secrets = secrets
	_, r.readsOn = tools.Lookup(result.Name)
}
