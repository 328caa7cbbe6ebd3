package engine

import (
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
)

// fold is what follows from a run's events for its driver itself, and does not depend
// on a machine, which may be broken.
type fold struct {
	// seq, head and last are the number, the hash and the time of the last event, and
	// cycle is the cycle that it is of.
	seq   int64
	head  string
	last  time.Time
	cycle int
	// What is open: calls of the last answer, children and commands.
	calls    openCalls
	children openChildren
	commands openCommands
	cache    drive.Continuity
	bill     bill
	// secrets are the names of secrets that the journal gives, and messages the ids of
	// the messages that the run has taken in.
	secrets  declaredSecrets
	messages map[string]bool
	files    seenFiles
}

// note follows an event whose body has that hash.
func (f *fold) note(ev *event.Event, hash string) {
	f.seq, f.head, f.last = ev.Seq, hash, ev.Time
	f.calls.note(ev.Data)
	f.children.note(ev.Data)
	f.commands.note(ev.Data)
	f.bill.note(ev.Data)
	f.cache.Note(ev)
	f.secrets.note(ev.Data)
	f.files.note(ev.Data)
	if said, ok := ev.Data.(event.InputReceived); ok && said.MessageID != "" {
		if f.messages == nil {
			f.messages = map[string]bool{}
		}
		f.messages[said.MessageID] = true
	}
}
