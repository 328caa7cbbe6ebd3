package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"sort"
	"strconv"
	"strings"
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
	// streamPage is how many events are read from the journal at once.
	streamPage = 100
)

// events gives a run's events, as a page or, to who asks for text/event-stream,
// as a stream. The place of an event is its pos in both.
func (s *Server) events(w http.ResponseWriter, r *http.Request) error {
	row, err := s.find(r)
	if err != nil {
		return err
	}
	q, err := readQuery(r)
	if err != nil {
		return err
	}
	streams := wantsStream(r)
	from := q.cursor
	if streams {
		from = cmp.Or(r.Header.Get("Last-Event-ID"), from)
	}
	after, err := s.seqAfter(r.Context(), row, from)
	if err != nil {
		return err
	}
	if streams {
		return s.stream(w, r, row, after)
	}
	return s.eventPage(w, r, row, after, q.limit)
}

func wantsStream(r *http.Request) bool {
	for _, accept := range r.Header.Values("Accept") {
		for media := range strings.SplitSeq(accept, ",") {
			if name, _, err := mime.ParseMediaType(media); err == nil && name == "text/event-stream" {
				return true
			}
		}
	}
	return false
}

// seqAfter is the number of the run's last event up to a pos: 0 for none. A
// run's pos grow with its numbers.
func (s *Server) seqAfter(ctx context.Context, row journal.Run, pos string) (int64, error) {
	if pos == "" {
		return 0, nil
	}
	after, err := strconv.ParseInt(pos, 10, 64)
	if err != nil || after < 0 {
		return 0, kindQuery.problem("give the pos of an event, or the next of a page", "the place %q is no pos", pos)
	}
	seq := sort.Search(int(row.Seq), func(i int) bool {
		var records []journal.Record
		if err == nil {
			records, err = s.store.Records(ctx, row.ID, int64(i), 1)
		}
		return err != nil || len(records) == 0 || records[0].Pos > after
	})
	return int64(seq), err
}

// eventPage gives events as they are stored, with their pos.
func (s *Server) eventPage(w http.ResponseWriter, r *http.Request, row journal.Run, after int64, limit int) error {
	records, err := s.store.Records(r.Context(), row.ID, after, limit+1)
	if err != nil {
		return err
	}
	page := list[json.RawMessage]{Items: []json.RawMessage{}}
	for i, rec := range records[:min(len(records), limit)] {
		body, err := shownEvent(rec)
		if err != nil {
			return err
		}
		page.Items = append(page.Items, body)
		if i == limit-1 && len(records) > limit {
			page.Next = strconv.FormatInt(rec.Pos, 10)
		}
	}
	s.answer(w, r, http.StatusOK, page)
	return nil
}

// shownEvent is an event as clients see it: with its pos, which is not among
// the bytes that are stored.
func shownEvent(rec journal.Record) (json.RawMessage, error) {
	e, err := event.Decode(rec.Body)
	if err != nil {
		return nil, fmt.Errorf("server: run %s, event %d: %w", rec.Run, rec.Seq, err)
	}
	e.Pos = rec.Pos
	return json.Marshal(e)
}

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
	defer context.AfterFunc(s.running, cancel)()
	out := &sse{w: w, control: http.NewResponseController(w)}
	changed := s.store.Watch(ctx)
	if err := out.begin(); err != nil {
		return nil // the reader has gone
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
}

func (o *sse) begin() error {
	h := o.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	o.w.WriteHeader(http.StatusOK)
	return o.comment("stream")
}

// send writes an event. Its JSON has no line breaks.
func (o *sse) send(pos int64, kind string, body []byte) error {
	_ = o.control.SetWriteDeadline(time.Now().Add(slowest))
	_, err := fmt.Fprintf(o.w, "id: %d\nevent: %s\ndata: %s\n\n", pos, kind, body)
	return err
}

// comment writes what readers pass over.
func (o *sse) comment(text string) error {
	_ = o.control.SetWriteDeadline(time.Now().Add(slowest))
	if _, err := fmt.Fprintf(o.w, ": %s\n\n", text); err != nil {
		return err
	}
	return o.flush()
}

func (o *sse) flush() error { return o.control.Flush() }
