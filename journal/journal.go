// Package journal defines a durable store of runs: an append-only, numbered log
// of events per run, one lease per run, and an inbox of commands.
//
// A run is driven by the holder of its lease. Every append carries the lease's
// epoch and fails, in the same transaction, if it is stale, so that two
// processes with one journal never drive the same run. All others send commands
// to the run's inbox.
package journal

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// State is the state of a run, as lists show it.
type State string

// The states.
const (
	Queued  State = "queued"
	Running State = "running"
	Waiting State = "waiting"
	Parked  State = "parked"
	Paused  State = "paused"
	Ended   State = "ended"
)

// WaitRetry is the detail of a run that is [Waiting] to retry something that
// failed. A run that waits for a decision has the reason for which it would
// park.
const WaitRetry = "retry"

// WaitTime is the detail of a run that is [Waiting] for a time.
const WaitTime = "time"

// The details of a run that is [Waiting] for a worker: no process that has the run's
// place is there, or one is there and has not taken the run yet.
const (
	WaitNoWorker = "no worker has "
	WaitWorker   = "a worker that has "
)

// WaitsForWorker reports whether a run waits for a worker that has its place.
func (p Progress) WaitsForWorker() bool {
	return p.State == Waiting && (strings.HasPrefix(p.Detail, WaitNoWorker) || strings.HasPrefix(p.Detail, WaitWorker))
}

// States returns all states, in the order in which a run reaches them.
func States() []State { return []State{Queued, Running, Waiting, Parked, Paused, Ended} }

// Run is the store's row about a run: what lists need without a fold.
type Run struct {
	ID     string `json:"id"`
	Parent string `json:"parent,omitempty"`
	// Root is the root of the run's tree, the run itself for a root. Depth counts
	// the runs on the path from the root, including both ends.
	Root  string `json:"root,omitempty"`
	Depth int    `json:"depth,omitempty"`
	// ForkOf is the run whose events up to ForkSeq this run shares; its own events
	// follow them.
	ForkOf  string `json:"forkOf,omitempty"`
	ForkSeq int64  `json:"forkSeq,omitempty"`
	Kind    string `json:"kind"`
	Name    string `json:"name,omitempty"`
	// Created and Updated are the times of the run's own first and last event;
	// in rows of older versions, of the commits that brought them.
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
	Progress
	// Seq and Head are the number and the hash of the last event.
	Seq  int64  `json:"seq"`
	Head string `json:"head"`
	// Owner holds the lease; empty if no one does.
	Owner  string    `json:"owner,omitempty"`
	Expiry time.Time `json:"-"`
}

// Placed returns the row with its place in the tree. A row without one was
// written when a tree was at most two runs deep.
func (r Run) Placed() Run {
	switch {
	case r.Root != "":
	case r.Parent != "":
		r.Root, r.Depth = r.Parent, 2
	default:
		r.Root, r.Depth = r.ID, 1
	}
	return r
}

// Progress is the part of a run's row that its driver keeps up to date.
type Progress struct {
	State  State  `json:"state"`
	Detail string `json:"detail,omitempty"`
	Cycles int    `json:"cycles"`
	// Outcome is set once the run has ended.
	Outcome json.RawMessage `json:"outcome,omitempty"`
	// Waits is what the run waits for. It is nil if the row does not have it, as one
	// that an older version wrote; the run's events say it then.
	Waits *Waits `json:"-"`
}

// Lease is the right to drive one run.
type Lease struct {
	Run    string
	Owner  string
	Epoch  int64
	Expiry time.Time
}

// Record is one event as stored: its bytes, and what the store indexes.
type Record struct {
	Pos  int64
	Run  string
	Seq  int64
	Type string
	// Body is the event's stored form (event.Encode), without pos.
	Body []byte
	// Event replaces Body in a batch for a store that [KeepsValues]: it is the event
	// without Prev. No store returns it.
	Event *event.Event
	// Root is the root of the run's tree, if the record was read by Tail or Tree.
	Root string
}

// Batch is what one append writes: all of it or nothing.
type Batch struct {
	Lease Lease
	// Parent is the lease of the parent of a run that Create adds. If it is set and
	// stale, Create fails with [ErrStale]: another process drives the parent, and may
	// have recorded the end of a child that did not exist yet.
	Parent  Lease
	Records []Record
	// Head is the hash of the last record's body.
	Head string
	// Consumed lists the inbox commands that the records answer.
	Consumed []int64
	Status   Progress
	// Time is the time of the run's last event.
	Time time.Time
	// Blobs are stored separately from the records, once per digest.
	Blobs []Blob
	// Release releases the lease in the same transaction.
	Release bool
}

// Blob is content stored once, by its digest. A run that refers to one names it
// in a batch, even if it is stored already: it is deleted with the last run
// that named it.
type Blob struct {
	Digest string
	Bytes  []byte
}

// CommandKind is the kind of a command.
type CommandKind string

// The commands that may reach a run from outside its driver.
const (
	Cancel  CommandKind = "cancel"
	Pause   CommandKind = "pause"
	Input   CommandKind = "input"
	Approve CommandKind = "approve"
	Reject  CommandKind = "reject"
	Raise   CommandKind = "raise"
)

// Command is one row of an inbox.
type Command struct {
	ID   int64       `json:"id"`
	Run  string      `json:"run"`
	Kind CommandKind `json:"kind"`
	// By is the sender of the command, and Principal the same with role and proof; Text
	// is an input or a reason.
	By        string          `json:"by,omitempty"`
	Principal event.Principal `json:"principal,omitzero"`
	Text      string          `json:"text,omitempty"`
	// Media are the images and files of an input, with their contents; Later, Replaces and
	// Mode are as in [event.InputReceived].
	Media    []llm.Media `json:"media,omitempty"`
	Later    bool        `json:"later,omitempty"`
	Replaces int64       `json:"replaces,omitempty"`
	Mode     string      `json:"mode,omitempty"`
	CallID   string      `json:"callId,omitempty"`
	// Args are arguments that replace those of an approved call; empty keeps the call's
	// own.
	Args json.RawMessage `json:"args,omitempty"`
	// Remember accepts, with an approval, the rule that the question offers for the rest
	// of the run.
	Remember bool `json:"remember,omitempty"`
	// Sealed replaces Text, Media and Args if only the process that drives the run
	// may read them.
	Sealed []byte `json:"sealed,omitempty"`
	// Setting and Value are for [Raise].
	Setting string    `json:"setting,omitempty"`
	Value   float64   `json:"value,omitempty"`
	At      time.Time `json:"at"`
}

// Filter selects runs for a list.
type Filter struct {
	States []State
	Parent string
	// Root selects the runs of a tree, including the root. Roots selects the runs
	// without a parent.
	Root  string
	Roots bool
	// Kind and Name select the runs of a kind, and of a name, and Detail those
	// whose state has that detail.
	Kind, Name, Detail string
	// ForkOf selects the forks of a run.
	ForkOf string
	// Owner selects the runs whose lease has that holder, also if it has expired. Free
	// selects those whose lease is released or has expired, by the store's clock.
	Owner string
	Free  bool
	// UpdatedBefore excludes runs that were written to at or after it.
	UpdatedBefore time.Time
	// Before is the id to continue after, newest first.
	Before string
	// Limit is how many to return at most, 0 for all.
	Limit int
}

// KeepsValues is implemented by stores that may keep the events of a batch as values.
// They encode a run's events, with the hash of the previous event in each, when a
// reader needs the bytes, which are the same as in another store.
type KeepsValues interface{ KeepsValues() bool }

// ReadsTypes is implemented by stores that find the events of some types without reading
// all others.
type ReadsTypes interface {
	// RecordsOf is [Store.Records] for events of these types. If it returns fewer than
	// limit, there are no more.
	RecordsOf(ctx context.Context, run string, after int64, limit int, types ...event.Type) ([]Record, error)
}

// Store keeps runs. Implementations are safe for concurrent use, by goroutines
// and by processes.
type Store interface {
	// Create adds a run with its first records and its lease; [ErrExists] if the id
	// exists. The records of a fork begin after ForkSeq, and the run that it shares the
	// earlier events with must contain that event.
	Create(ctx context.Context, run Run, batch Batch) (Lease, int64, error)
	// Acquire takes the lease of a run whose lease is free, expired, or held by dead
	// (an owner that the caller knows to be gone; "" for none). Otherwise it fails with
	// a *[HeldError], even if owner is the holder: two drivers in one process exclude
	// each other like any two.
	Acquire(ctx context.Context, run, owner, dead string, ttl time.Duration) (Lease, error)
	// Renew extends a lease.
	Renew(ctx context.Context, l Lease, ttl time.Duration) (Lease, error)
	// Release releases a lease; releasing a stale one does nothing.
	Release(ctx context.Context, l Lease) error
	// Append writes a batch durably and returns the pos of its first record; the
	// others follow without gaps. An error means that nothing was written. A batch
	// that ends the run empties its inbox. The store does not change the batch and
	// may keep its bytes.
	Append(ctx context.Context, b Batch) (int64, error)

	// Run returns a run's row, Find the one whose id begins with prefix.
	Run(ctx context.Context, id string) (Run, error)
	Find(ctx context.Context, prefix string) (Run, error)
	Runs(ctx context.Context, f Filter) ([]Run, error)
	// Owners returns the holders of all leases that are not released, each once.
	Owners(ctx context.Context) ([]string, error)
	// Records returns up to limit records (0: all) of a run after a seq. Records that a
	// fork shares are those of its ancestors, with their run and pos.
	Records(ctx context.Context, run string, after int64, limit int) ([]Record, error)
	// Tail returns up to limit records of any run after a pos, and Last the newest pos,
	// 0 for none.
	Tail(ctx context.Context, after int64, limit int) ([]Record, error)
	Last(ctx context.Context) (int64, error)
	// Tree returns up to limit records of a root and all its descendants, after a pos.
	Tree(ctx context.Context, root string, after int64, limit int) ([]Record, error)

	// Send puts a command into a run's inbox and returns its number, which is unique in
	// the store; Inbox returns the commands that are not consumed, oldest first, of one
	// run or ("") of all.
	Send(ctx context.Context, c Command) (int64, error)
	Inbox(ctx context.Context, run string) ([]Command, error)
	// Watch returns a channel that receives after a commit by this process or another,
	// at most 100 ms later. It is never closed before ctx ends; several commits may
	// cause one receive.
	Watch(ctx context.Context) <-chan struct{}
	// WatchInbox is Watch for the commands to one run, so that other commits do not
	// wake its driver. It may receive without a command if a store does not know what
	// happened before.
	WatchInbox(ctx context.Context, run string) <-chan struct{}

	// Note adds a note and returns it with its number, and true. If a note with its key
	// exists and has not expired by n.At, Note returns that, and false. Amend replaces
	// a note's body, or deletes the note if body is nil. Notes returns up to limit
	// notes without a key, newest first, before a number (0: from the newest).
	Note(ctx context.Context, n Note) (kept Note, fresh bool, err error)
	Amend(ctx context.Context, id int64, body []byte) error
	Notes(ctx context.Context, before int64, limit int) ([]Note, error)

	// Files returns the absolute names of the files that the runs are stored in,
	// none for a store without files. A program that can write one of them can
	// approve any call of any run.
	Files() []string
	Blob(ctx context.Context, digest string) ([]byte, error)
	// Delete removes a run that no process drives, with its events, its inbox and the
	// blobs that no other run named. A run with forks is not deleted; the error is a
	// *[ForkedError]. The run disappears at once; the space is freed in steps, between
	// which others write. Positions stay unique.
	Delete(ctx context.Context, run string) error
	Close() error
}
