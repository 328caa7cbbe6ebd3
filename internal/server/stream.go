package server

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/follow"
	"github.com/pawlrun/pawl/internal/server/agui"
	"github.com/pawlrun/pawl/journal"
)

// gather is the least time between two writes of a stream that has caught up, so that
// a busy run does not cost a write for each event.
const gather = 25 * time.Millisecond

// stream sends a run's events as they occur, whichever process drives it, until the
// run ends or the reader disconnects. It reads at the reader's pace, so that no run
// waits for a reader.
type stream struct {
	server *Server
	row    journal.Run
	query  follow.Query
	// first is the snapshot that the stream begins with, nil for none; has holds
	// the last event number of each run that the snapshot covers.
	first *snapshot
	has   map[string]int64
	// agui translates the events to AG-UI; nil sends them as they are. The
	// translation starts with the first event of the run, and skips what the reader
	// has, up to a pos.
	agui   *agui.Translator
	behind int64
	// entries sends the entries that events change instead of the events; nil sends
	// events.
	entries *entryStream
	// status is the status of the answer, 0 for 200.
	status int
	out    *sse
}

// useAGUI makes the stream use AG-UI.
func (t *stream) useAGUI(words *agui.Translator) {
	t.agui, t.behind, t.query.After = words, t.query.After, 0
}

// snapshot is the state of a run at the beginning of its stream.
type snapshot struct {
	// Pos is the place after which the events begin.
	Pos int64     `json:"pos"`
	Run runDetail `json:"run"`
	// Tree holds the run and all its descendants, on request.
	Tree []journal.Run `json:"tree,omitempty"`
}

// begin makes the stream start with the run's state. The place is read before the
// state, and events that the state includes are left out.
func (t *stream) begin(ctx context.Context) (err error) {
	s, snap := t.server, snapshot{}
	if snap.Pos, err = s.store.Last(ctx); err != nil {
		return err
	}
	if t.row, err = s.store.Run(ctx, t.row.ID); err != nil {
		return err
	}
	if t.query.Tree {
		if snap.Tree, err = s.store.Runs(ctx, journal.Filter{Root: t.row.Placed().Root}); err != nil {
			return err
		}
		slices.Reverse(snap.Tree) // ancestors first
		snap.Tree = journal.Below(snap.Tree, t.row.ID)
	}
	if snap.Run, err = s.detailOf(ctx, t.row); err != nil {
		return err
	}
	t.has = map[string]int64{t.row.ID: t.row.Seq}
	for _, row := range snap.Tree {
		t.has[row.ID] = row.Seq
	}
	t.first, t.query.After = &snap, snap.Pos
	return nil
}

// serve answers a request. A reader that has all events of an ended run receives a
// status that stops it from reconnecting.
func (t *stream) serve(w http.ResponseWriter, r *http.Request) error {
	s := t.server
	if after := max(t.behind, t.query.After); t.first == nil && (t.entries == nil || t.entries.whole == 0) && t.row.State == journal.Ended && after > 0 {
		if seq, err := journal.SeqAfter(r.Context(), s.store, t.row, after); err != nil || seq >= t.row.Seq {
			w.WriteHeader(http.StatusNoContent)
			return err
		}
	}
	sub, err := s.follower.Subscribe(r.Context(), t.query)
	if err != nil {
		return err
	}
	defer sub.Close()
	if t.query.Deltas {
		defer s.peer.Watch(t.row.Placed().Root)()
	}
	ctx, out, done := s.openStream(w, r, cmp.Or(t.status, http.StatusOK))
	defer done()
	t.out = out
	if err := t.out.begin(); err != nil || r.Method == http.MethodHead {
		return nil // the reader disconnected, or wants no more
	}
	t.row.Outcome = nil // the outcome may be large, and the stream sends it
	if err := t.send(ctx, sub); err != nil {
		s.log.Debug("stream ended", "run", t.row.ID, "error", err)
	}
	return nil
}

// send writes the events of a subscription until the run has ended.
func (t *stream) send(ctx context.Context, sub *follow.Subscription) error {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	var written time.Time
	over, err := t.sendFirst(ctx)
	for !over && err == nil {
		events, err := sub.Poll(ctx)
		if err != nil {
			return err
		}
		if over, err = t.sendAll(ctx, follow.Coalesce(events)); over || err != nil {
			return err
		}
		if len(events) > 0 {
			written = time.Now()
		}
		if sub.More() {
			continue
		}
		select {
		case <-sub.Wake():
			if rest := gather - time.Since(written); rest > 0 && !sleep(ctx, rest) {
				return ctx.Err()
			}
		case <-beat.C:
			if err := t.out.comment("alive"); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

// sendFirst writes the beginning of the stream, and reports whether nothing
// follows.
func (t *stream) sendFirst(ctx context.Context) (over bool, err error) {
	if t.entries != nil && t.entries.whole > 0 {
		if err := t.entries.flush(ctx, t.out, []string{t.row.ID}, t.entries.whole, t.entries.over); err != nil {
			return false, err
		}
		return t.entries.over, t.out.flush()
	}
	if t.first == nil {
		return false, nil
	}
	if err := t.out.addJSON(t.first.Pos, "snapshot", t.first); err != nil {
		return false, err
	}
	return t.row.State == journal.Ended, t.out.flush()
}

// sendAll writes events, and reports whether they end the run.
func (t *stream) sendAll(ctx context.Context, events []follow.Event) (over bool, err error) {
	if t.entries != nil && len(events) > 0 {
		over := slices.ContainsFunc(events, t.isLast)
		if err := t.entries.add(ctx, t.out, events, over); err != nil {
			return false, err
		}
		return over, t.out.flush()
	}
	for i := range events {
		e := &events[i]
		if e.Seq > 0 && e.Seq <= t.has[e.Run] {
			continue
		}
		over = t.isLast(*e)
		if err := t.add(e); err != nil {
			return false, err
		}
		if over {
			break
		}
	}
	if len(events) == 0 {
		return over, nil
	}
	return over, t.out.flush()
}

// isLast reports whether an event is the last one of the run.
func (t *stream) isLast(e follow.Event) bool {
	return e.Run == t.row.ID && e.Type() == event.TypeRunCompleted
}

// add adds an event to the pending output. It first releases what is no longer
// needed, so that a reader that does not read keeps only its pending output in
// memory.
func (t *stream) add(e *follow.Event) error {
	if t.agui == nil {
		kind := string(e.Type())
		body, err := e.JSON()
		if err != nil {
			return err
		}
		e.Data = nil
		return t.out.add(e.Pos, kind, body)
	}
	events := t.agui.Translate(&e.Event)
	e.Data = nil
	if e.Pos > 0 && e.Pos <= t.behind {
		return nil
	}
	for i := range events {
		// A reader that reconnects receives all AG-UI events of this event again,
		// or none.
		pos := e.Pos
		if i < len(events)-1 {
			pos = 0
		}
		if err := t.out.addJSON(pos, "", events[i]); err != nil {
			return err
		}
	}
	return nil
}

// sleep reports whether a time has passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
