package journal

import "context"

// Snapshot is a state that was computed from a run's events up to one of them. It saves
// a reader the fold and may be deleted at any time.
type Snapshot struct {
	// Version is the version of the code that made it. A reader of another version
	// ignores it.
	Version string
	// Seq and Head are the number and the hash of the last event that it contains.
	Seq  int64
	Head string
	Body []byte
}

// KeepsSnapshots is implemented by stores that keep snapshots beside the runs, and delete
// them with their runs.
type KeepsSnapshots interface {
	// Keep stores a snapshot of a run in place of an earlier one with the name. It does
	// nothing for a run that does not exist.
	Keep(ctx context.Context, run, name string, s Snapshot) error
	// Kept returns the snapshot of a run with a name, the zero value for none.
	Kept(ctx context.Context, run, name string) (Snapshot, error)
}
