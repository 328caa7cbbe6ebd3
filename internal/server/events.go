package server

import (
	"cmp"
	"context"
	"encoding/json"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/follow"
	"github.com/pawlrun/pawl/internal/server/agui"
	"github.com/pawlrun/pawl/journal"
)

// eventsQuery selects the events of a run and their format.
type eventsQuery struct {
	paging
	After string       `json:"after,omitempty" jsonschema:"the pos of the event behind which to begin"`
	Type  []event.Type `json:"type,omitempty" jsonschema:"a type of event; the page has only events of these types"`
	From  string       `json:"from,omitempty" jsonschema:"the seq of the event with which the page begins"`
	watching
	// Snapshot applies to the first request only; a reader that reconnects has its
	// place.
	Snapshot bool `json:"snapshot,omitempty" jsonschema:"begin a stream with the state of the run, as event snapshot, and go on behind it, unless a place is given"`
}

// watching holds the parameters of a stream of events.
type watching struct {
	Tree   bool   `json:"tree,omitempty" jsonschema:"also the events of all runs below it, in the order of pos"`
	Deltas bool   `json:"deltas,omitempty" jsonschema:"in a stream, also live events, which have no pos, of runs that this server drives; in the middle of an answer they begin with its text so far"`
	Format string `json:"format,omitempty" jsonschema:"the words of a stream: pawl, unless this says ag-ui"`
}

// check rejects an unknown format.
func (w watching) check() error {
	if w.Format == "" || w.Format == formatPawl || w.Format == formatAGUI {
		return nil
	}
	return kindQuery.problem("give pawl or ag-ui, the latter without snapshot", "format is %q", w.Format)
}

// Formats of a stream.
const (
	formatPawl = "pawl"
	formatAGUI = "ag-ui"
)

// streamOf returns the stream of a run's events after a place.
func (s *Server) streamOf(row journal.Run, after int64, w watching) *stream {
	row.Outcome = nil // it may be large, and many streams may begin at once
	t := &stream{server: s, row: row, query: follow.Query{Run: row.ID, After: after, Tree: w.Tree, Deltas: w.Deltas}}
	if w.Format == formatAGUI {
		t.useAGUI(agui.New(row.ID))
	}
	return t
}

// events sends a run's events as a page or, for Accept: text/event-stream, as a
// stream. In both the place of an event is its pos.
func (s *Server) events(a *apiRequest[eventsQuery, none]) (list[eventJSON], error) {
	r, page, from := a.Request, list[eventJSON]{}, cmp.Or(a.query.Cursor, a.query.After)
	row, err := s.find(r)
	if err != nil {
		return page, err
	}
	streams := wantsStream(r)
	if err := a.query.fits(streams, r.Header.Get("Last-Event-ID") != ""); err != nil {
		return page, err
	}
	if streams {
		from = cmp.Or(r.Header.Get("Last-Event-ID"), from)
	}
	after, err := placeOf(from)
	if err != nil {
		return page, err
	}
	if err := s.checkPlace(r.Context(), after); err != nil {
		return page, err
	}
	if streams {
		err := a.query.check()
		if a.query.Snapshot && a.query.Format == formatAGUI {
			err = kindQuery.problem("give pawl or ag-ui, the latter without snapshot", "format is %q", a.query.Format)
		}
		if err != nil {
			return page, err
		}
		t := s.streamOf(row, after, a.query.watching)
		if a.query.Snapshot && from == "" {
			if err := t.begin(r.Context()); err != nil {
				return page, err
			}
		}
		return page, cmp.Or(t.serve(a.w, r), errAnswered)
	}
	if a.query.Tree {
		return s.treePage(r.Context(), row, after, a.query.limit())
	}
	return s.eventPage(r.Context(), row, after, a.query)
}

// fits rejects parameters that do not apply: parameters of streams for a page,
// those of pages for a stream, and two places. A resumed stream has its place in a
// header and repeats the parameters of the first request.
func (h eventsQuery) fits(streams, resumed bool) error {
	if err := applies(streams, []givenParameter{
		{"deltas", h.Deltas, true}, {"snapshot", h.Snapshot, true}, {"format", h.Format != "", true}, {"limit", h.Limit != 0, false},
		{"type", len(h.Type) > 0, false}, {"from", h.From != "", false},
	}); err != nil {
		return err
	}
	switch place := cmp.Or(h.Cursor, h.After) != ""; {
	case h.Tree && (len(h.Type) > 0 || h.From != ""):
		return kindQuery.problem("leave tree out, or type and from", "type and from select events of one run")
	case h.From != "" && place:
		return kindQuery.problem("give one of the two", "from, and cursor or after, are both places to begin at")
	case h.Cursor != "" && h.After != "":
		return kindQuery.problem("give one of the two", "cursor and after are both places to begin behind")
	case h.Snapshot && place && !resumed:
		return kindQuery.problem("give one of the two", "snapshot begins with the run as it stands, and cursor or after with a place")
	}
	return nil
}

// givenParameter is a query parameter that applies to streams or to pages alone.
type givenParameter struct {
	name           string
	given, streams bool
}

// applies returns an error about the first parameter that was given and does not apply.
func applies(streams bool, parameters []givenParameter) error {
	for _, p := range parameters {
		switch {
		case p.given && p.streams && !streams:
			return kindQuery.problem("send the header Accept: text/event-stream, or leave it out", "%s is for streams, and this asks for a page", p.name)
		case p.given && !p.streams && streams:
			return kindQuery.problem("leave it out, or ask for a page", "%s is for pages, and this asks for a stream", p.name)
		}
	}
	return nil
}

// treePage returns the events of a run and its descendants, as a stream of the tree
// does.
func (s *Server) treePage(ctx context.Context, row journal.Run, after int64, limit int) (list[eventJSON], error) {
	page := list[eventJSON]{Items: []eventJSON{}}
	sub, err := s.follower.Subscribe(ctx, follow.Query{Run: row.ID, After: after, Tree: true})
	if err != nil {
		return page, err
	}
	defer sub.Close()
	for last := int64(0); ; {
		events, err := sub.Poll(ctx)
		if err != nil || len(events) == 0 && !sub.More() {
			return page, err
		}
		for i := range events {
			if len(page.Items) == limit {
				page.Next = strconv.FormatInt(last, 10)
				return page, nil
			}
			body, err := events[i].JSON()
			if err != nil {
				return page, err
			}
			page.Items, last = append(page.Items, eventJSON(body)), events[i].Pos
		}
	}
}

// eventJSON is an event in the form that clients receive.
type eventJSON json.RawMessage

// liveJSON is a live event in the form that clients receive.
type liveJSON json.RawMessage

// MarshalJSON implements [json.Marshaler].
func (e eventJSON) MarshalJSON() ([]byte, error) { return e, nil }

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

// placeOf parses a pos, 0 for none.
func placeOf(pos string) (int64, error) {
	if pos == "" {
		return 0, nil
	}
	after, err := strconv.ParseInt(pos, 10, 64)
	if err != nil || after < 0 {
		return 0, kindQuery.problem("give the pos of an event, or the next of a page", "the place %q is no pos", pos)
	}
	return after, nil
}

// checkPlace rejects a place after the last event: a client with a pos of another
// journal would wait there and miss the next events.
func (s *Server) checkPlace(ctx context.Context, after int64) error {
	if after == 0 {
		return nil
	}
	last, err := s.store.Last(ctx)
	if err == nil && after > last {
		return kindQuery.problem("leave the place out to read from the beginning", "there is no event at %d yet; the newest of this journal is at %d", after, last)
	}
	return err
}

// eventPage returns stored events with their pos.
func (s *Server) eventPage(ctx context.Context, row journal.Run, after int64, q eventsQuery) (list[eventJSON], error) {
	page := list[eventJSON]{Items: []eventJSON{}}
	seq, err := q.begin(ctx, s.store, row, after)
	if err != nil {
		return page, err
	}
	read, last := s.store.Records, int64(0)
	if typed, may := s.store.(journal.ReadsTypes); may && len(q.Type) > 0 {
		read = func(ctx context.Context, run string, after int64, limit int) ([]journal.Record, error) {
			return typed.RecordsOf(ctx, run, after, limit, q.Type...)
		}
	}
	for {
		records, err := read(ctx, row.ID, seq, max(q.limit()+1, pageOfChanges*min(len(q.Type), 1)))
		if err != nil {
			return page, err
		}
		for _, rec := range records {
			seq = rec.Seq
			if len(q.Type) > 0 && !slices.Contains(q.Type, event.Type(rec.Type)) {
				continue
			}
			if len(page.Items) == q.limit() {
				page.Next = strconv.FormatInt(last, 10)
				return page, nil
			}
			body, err := shownEvent(rec)
			if err != nil {
				return page, err
			}
			page.Items, last = append(page.Items, eventJSON(body)), rec.Pos
		}
		if len(q.Type) == 0 || len(records) < pageOfChanges {
			return page, nil
		}
	}
}

// begin returns the number of the event behind which a page begins.
func (h eventsQuery) begin(ctx context.Context, store journal.Store, row journal.Run, after int64) (int64, error) {
	if h.From == "" {
		return journal.SeqAfter(ctx, store, row, after)
	}
	from, err := strconv.ParseInt(h.From, 10, 64)
	if err != nil || from < 1 {
		return 0, kindQuery.problem("give the seq of an event, from 1", "from is %q", h.From)
	}
	return from - 1, nil
}

// shownEvent returns an event in the form that clients receive: the stored bytes
// with the pos, which is not part of them.
func shownEvent(rec journal.Record) (json.RawMessage, error) {
	e, err := decoded(rec)
	if err != nil {
		return nil, err
	}
	return json.Marshal(e)
}
