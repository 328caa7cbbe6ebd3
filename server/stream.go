package server

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

const (
	// heartbeat is how often a stream says that it is alive when nothing else
	// does (PRODUCT 7).
	heartbeat = 10 * time.Second
	// slowest is how long a reader may take for one write. One that takes
	// longer is cut off, and reads on from its last event when it comes back.
	slowest = 30 * time.Second
	// lastWrite is how long it may take once the server closes.
	lastWrite = time.Second
	// streamPage is how many events are read from the journal at once.
	streamPage = 100
)

// stream sends a run's events as they come, whoever drives it, until the run
// has ended or the reader has gone. It reads from the journal at the reader's
// pace, so that no run waits for a reader. A reader that has everything of an
// ended run is told not to come back.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, row journal.Run, after int64) error {
	if row.State == journal.Ended && after >= row.Seq {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	out := &sse{w: w, control: http.NewResponseController(w), ended: ctx.Err}
	defer context.AfterFunc(s.running, func() {
		cancel()
		out.within(lastWrite)
	})()
	changed := s.store.Watch(ctx)
	if err := out.begin(); err != nil {
		return nil // the reader has gone
	}
	if r.Method == http.MethodHead {
		return nil
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		sent, err := s.sendEvents(ctx, out, row.ID, &after)
		if err != nil {
			s.log.Debug("stream ended", "run", row.ID, "error", err)
			return nil
		}
		if sent == event.TypeRunCompleted {
			return nil
		}
		select {
		case <-changed:
		case <-beat.C:
			if err := out.comment("alive"); err != nil {
				return nil
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// sendEvents sends what the journal holds beyond an event, and returns the type
// of the last that it sent.
func (s *Server) sendEvents(ctx context.Context, out *sse, run string, after *int64) (last event.Type, err error) {
	for {
		records, err := s.store.Records(ctx, run, *after, streamPage)
		if err != nil {
			return last, err
		}
		for _, rec := range records {
			body, err := shownEvent(rec)
			if err != nil {
				return last, err
			}
			if err := out.send(rec.Pos, rec.Type, body); err != nil {
				return last, err
			}
			*after, last = rec.Seq, event.Type(rec.Type)
		}
		if len(records) > 0 {
			if err := out.flush(); err != nil {
				return last, err
			}
		}
		if len(records) < streamPage {
			return last, nil
		}
	}
}

// sse writes server-sent events.
type sse struct {
	w       http.ResponseWriter
	control *http.ResponseController
	// ended is why nothing more is to be written.
	ended func() error
}

// within bounds the write that is under way, and those after it. A recorder of a
// test has no deadlines.
func (o *sse) within(d time.Duration) { _ = o.control.SetWriteDeadline(time.Now().Add(d)) }

// ready gives the next write its time, unless there is to be none. It looks for
// the end after that, so that it cannot give back the time that the end took.
func (o *sse) ready() error {
	o.within(slowest)
	return o.ended()
}

func (o *sse) begin() error {
	h := o.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	o.w.WriteHeader(http.StatusOK)
	err := o.comment("stream")
	// The whole request has come; from now on its client's going is listened for.
	_ = o.control.SetReadDeadline(time.Time{})
	return err
}

// send writes an event. Its JSON has no line breaks.
func (o *sse) send(pos int64, kind string, body []byte) error {
	if err := o.ready(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(o.w, "id: %d\nevent: %s\ndata: %s\n\n", pos, kind, body)
	return err
}

// comment writes what readers pass over.
func (o *sse) comment(text string) error {
	if err := o.ready(); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(o.w, ": %s\n\n", text); err != nil {
		return err
	}
	return o.flush()
}

func (o *sse) flush() error { return o.control.Flush() }
