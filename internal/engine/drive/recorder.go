package drive

import (
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/result"
)

// Recorder converts results to the form in which a run's journal keeps them. A
// driver has one for each run. It is safe for concurrent use once it is
// equipped.
type Recorder struct {
	Secrets Secrets
	Blobs   *Blobs
	// readsOn reports that the run has the tool that reads omitted parts.
	readsOn bool
}

// NewRecorder returns a recorder for a run in a store. Until it is equipped it knows no
// secrets.
func NewRecorder(store journal.Store) *Recorder {
	r := &Recorder{Blobs: NewBlobs(store)}
	r.Blobs.clean = func(m llm.Media) llm.Media { return r.Secrets.Media(m) }
	return r
}

// Equip sets the run's tools, and the secrets to remove from what the run
// journals.
func (r *Recorder) Equip(tools *tool.Set, secrets ...*secret.Redactor) {
	r.Secrets = secrets
	_, r.readsOn = tools.Lookup(result.Name)
}
