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

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
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
