package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/engine/follow"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/journal"
)

// keptViews is the number of cached views. A view uses memory for its events, not
// for texts.
const keptViews = 32

// foldedRun is the view of one run, up to an event.
type foldedRun struct {
	mu sync.Mutex
	drive.Viewed
}

// read applies the new events of the journal.
func (f *foldedRun) read(ctx context.Context, store journal.Store, run string) error {
	if err := f.Read(ctx, store, run); err != nil {
		return fmt.Errorf("server: %w", err)
	}
	return nil
}

func decoded(rec journal.Record) (*event.Event, error) {
	e, err := event.Decode(rec.Body)
	if err != nil {
		return nil, fmt.Errorf("server: run %s, event %d: %w", rec.Run, rec.Seq, err)
	}
	e.Pos = rec.Pos
	return e, nil
}

// viewQuery selects entries of a run.
type viewQuery struct {
	Limit  size   `json:"limit,omitempty" jsonschema:"how many entries a page has at most"`
	Before string `json:"before,omitempty" jsonschema:"the entry before which the page ends, which is the before of the page behind it; without it the page has the last entries"`
	Parent string `json:"parent,omitempty" jsonschema:"the entry below which they stand; without it they are those that stand below none"`
	Find   string `json:"find,omitempty" jsonschema:"a text, in any case: the page has the entries of the whole run whose events have it"`
	Only   string `json:"only,omitempty" jsonschema:"failed, asked or edited: the page has the entries of the whole run that failed, that asked a person, or that wrote files"`
	Tree   bool   `json:"tree,omitempty" jsonschema:"in a stream, also the entries of all runs below it"`
	Deltas bool   `json:"deltas,omitempty" jsonschema:"in a stream, also live events, of runs that this server drives"`
}

// entriesPage is a page of entries; the first page is the newest.
type entriesPage struct {
	Items []view.Entry `json:"items"`
	// Before is the cursor of the previous page, empty on the first.
	Before string `json:"before,omitempty"`
	// Earlier counts the entries before this page.
	Earlier int `json:"earlier,omitempty"`
	// Pos is the place after which a stream reports changes.
	Pos int64 `json:"pos"`
	// Limit is the limit at which the run parked, nil for none.
	Limit *view.Limit `json:"limit,omitempty"`
}

// changedEntry is a changed entry of a run of the tree.
type changedEntry struct {
	Run   string     `json:"run"`
	Entry view.Entry `json:"entry"`
	// Last reports that nothing follows in the stream.
	Last bool `json:"last,omitempty"`
}

// fits rejects parameters of streams for a page, and those of pages for a stream.
func (q viewQuery) fits(streams bool) error {
	return applies(streams, []givenParameter{
		{"deltas", q.Deltas, true}, {"tree", q.Tree, true}, {"limit", q.Limit != 0, false}, {"before", q.Before != "", false}, {"parent", q.Parent != "", false}, {"find", q.Find != "", false}, {"only", q.Only != "", false},
	})
}

// showView returns the entries of a run: pages from the end or, for Accept:
// text/event-stream, a stream of changed entries.
func (s *Server) showView(a *apiRequest[viewQuery, none]) (entriesPage, error) {
	row, err := s.find(a.Request)
	if err != nil {
		return entriesPage{}, err
	}
	streams := wantsStream(a.Request)
	if err := a.query.fits(streams); err != nil {
		return entriesPage{}, err
	}
	if q := a.query; q.Find != "" && q.Parent != "" || q.Only != "" && q.Find+q.Parent != "" {
		return entriesPage{}, kindQuery.problem("give one of the three", "find and only search the whole run, and parent selects what is below an entry")
	}
	if streams {
		return entriesPage{}, s.streamView(a, row)
	}
	f := s.views.Of(row.ID)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.read(a.Context(), s.store, row.ID); err != nil {
		return entriesPage{}, err
	}
	all, err := s.selectEntries(a.Context(), f, row.ID, a.query)
	if err != nil {
		return entriesPage{}, err
	}
	end := len(all)
	if b := a.query.Before; b != "" {
		if end = slices.IndexFunc(all, func(n *view.Entry) bool { return n.ID == b }); end < 0 {
			return entriesPage{}, noSuchEntry(b)
		}
	}
	begin := max(end-paging{Limit: a.query.Limit}.limit(), 0)
	page := entriesPage{Items: []view.Entry{}, Pos: f.Pos, Limit: f.AtLimit(), Earlier: begin}
	for _, n := range all[begin:end] {
		page.Items = append(page.Items, *n)
	}
	if begin > 0 {
		page.Before = all[begin].ID
	}
	return page, nil
}

// selectEntries returns the entries that a query selects, in order.
func (s *Server) selectEntries(ctx context.Context, f *foldedRun, run string, q viewQuery) ([]*view.Entry, error) {
	var has func(journal.Record) (bool, error)
	switch {
	case q.Find != "":
		quoted, err := json.Marshal(q.Find)
		if err != nil {
			return nil, err
		}
		needle := bytes.ToLower(quoted[1 : len(quoted)-1])
		has = func(rec journal.Record) (bool, error) { return bytes.Contains(bytes.ToLower(rec.Body), needle), nil }
	case q.Only == "edited":
		has = writesFiles
	case q.Only == "failed":
		return f.Failed(), nil
	case q.Only == "asked":
		return f.QuestionEntries(), nil
	case q.Only != "":
		return nil, kindQuery.problem("only can be failed, asked or edited", "there is no only %q", q.Only)
	case q.Parent != "" && f.Entry(q.Parent) == nil:
		return nil, noSuchEntry(q.Parent)
	default:
		return f.Below(q.Parent), nil
	}
	seqs, err := s.eventsThat(ctx, run, has)
	return f.Told(seqs), err
}

// eventsThat returns the numbers of the events of a run for which has reports true.
func (s *Server) eventsThat(ctx context.Context, run string, has func(journal.Record) (bool, error)) (map[int64]bool, error) {
	seqs := map[int64]bool{}
	for after := int64(0); ; {
		records, err := s.store.Records(ctx, run, after, pageOfChanges)
		if err != nil {
			return nil, err
		}
		for _, rec := range records {
			after = rec.Seq
			is, err := has(rec)
			if err != nil {
				return nil, err
			}
			if is {
				seqs[rec.Seq] = true
			}
		}
		if len(records) < pageOfChanges {
			return seqs, nil
		}
	}
}

// writesFiles reports whether an event is a call of a tool that names files to write.
func writesFiles(rec journal.Record) (bool, error) {
	if event.Type(rec.Type) != event.TypeToolCall {
		return false, nil
	}
	e, err := decoded(rec)
	if err != nil {
		return false, err
	}
	call, _ := e.Data.(event.ToolCall)
	return call.Facts != nil && slices.ContainsFunc(call.Facts.Paths, func(p event.PathUse) bool { return p.Write }), nil
}

func noSuchEntry(id string) *Problem {
	return kindNotFound.problem("list the entries at /v1/runs/{id}/view", "the run has no entry %q there", id)
}

// entryBody is an entry with its body.
type entryBody struct {
	Entry view.Entry  `json:"entry"`
	Parts []view.Part `json:"parts"`
}

// showEntry returns one entry of a run with its body; the number of any of its events
// names it.
func (s *Server) showEntry(a *apiRequest[none, none]) (entryBody, error) {
	row, err := s.find(a.Request)
	if err != nil {
		return entryBody{}, err
	}
	f := s.views.Of(row.ID)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.read(a.Context(), s.store, row.ID); err != nil {
		return entryBody{}, err
	}
	n := f.Entry(a.PathValue("entry"))
	if seq, err := strconv.ParseInt(a.PathValue("entry"), 10, 64); n == nil && err == nil {
		if about := f.Told(map[int64]bool{seq: true}); len(about) > 0 {
			n = about[0]
		}
	}
	if n == nil {
		return entryBody{}, noSuchEntry(a.PathValue("entry"))
	}
	body := entryBody{Entry: *n, Parts: []view.Part{}}
	for _, seq := range f.Events(n.ID) {
		records, err := s.store.Records(a.Context(), row.ID, seq-1, 1)
		if err != nil || len(records) == 0 {
			return entryBody{}, err
		}
		e, err := decoded(records[0])
		if err != nil {
			return entryBody{}, err
		}
		body.Parts = append(body.Parts, f.Body(e)...)
	}
	return body, nil
}

// streamView sends changed entries until the run ends or the reader disconnects:
// all entries of the run first if no place is given, else those that events after
// it change.
func (s *Server) streamView(a *apiRequest[viewQuery, none], row journal.Run) error {
	after, err := placeOf(a.Header.Get("Last-Event-ID"))
	if err == nil {
		err = s.checkPlace(a.Context(), after)
	}
	if err != nil {
		return err
	}
	t := s.streamOf(row, after, watching{Tree: a.query.Tree, Deltas: a.query.Deltas})
	t.entries = &entryStream{server: s, root: row.ID, sent: map[string]int64{}}
	if err := t.entries.begin(a.Context(), t, after); err != nil {
		return err
	}
	if err := t.serve(a.w, a.Request); err != nil {
		return err
	}
	return errAnswered
}

// entryStream turns the events of a stream into the entries that they change.
type entryStream struct {
	server *Server
	root   string
	// sent is the number of the last event of each run whose entries the reader
	// has.
	sent map[string]int64
	// whole is the place of the entries that the stream begins with, 0 if it
	// resumes after a place. over reports that nothing follows them.
	whole int64
	over  bool
}

// begin makes the stream start after a place of the run, or with all entries.
func (w *entryStream) begin(ctx context.Context, t *stream, after int64) (err error) {
	if after > 0 {
		w.sent[w.root], err = journal.SeqAfter(ctx, w.server.store, t.row, after)
		return err
	}
	f := w.server.views.Of(w.root)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.read(ctx, w.server.store, w.root); err != nil {
		return err
	}
	t.query.After, w.whole, w.over = f.Pos, f.Pos, f.Ended
	return nil
}

// add writes the entries that events change. The last one has the place of the last
// event.
func (w *entryStream) add(ctx context.Context, out *sse, events []follow.Event, last bool) error {
	changed := map[string]bool{}
	var runs []string
	pos := int64(0)
	for i := range events {
		e := &events[i]
		switch kind := e.Type(); {
		case e.Seq > 0:
			pos = e.Pos
			if !changed[e.Run] {
				changed[e.Run], runs = true, append(runs, e.Run)
				if _, known := w.sent[e.Run]; !known {
					w.sent[e.Run] = e.Seq - 1
				}
			}
		case kind == event.TypeText, kind == event.TypeReasoning, kind == event.TypeTextReset, kind == event.TypeToolProgress:
			if err := w.flush(ctx, out, runs, pos, false); err != nil {
				return err
			}
			runs, pos = nil, 0
			clear(changed)
			body, err := e.JSON()
			if err != nil {
				return err
			}
			if err := out.add(0, string(kind), body); err != nil {
				return err
			}
		}
	}
	return w.flush(ctx, out, runs, pos, last)
}

func (w *entryStream) flush(ctx context.Context, out *sse, runs []string, pos int64, last bool) error {
	var changed []changedEntry
	for _, run := range runs {
		f := w.server.views.Of(run)
		f.mu.Lock()
		err := f.read(ctx, w.server.store, run)
		for _, n := range f.Since(w.sent[run]) {
			changed = append(changed, changedEntry{Run: run, Entry: *n})
		}
		w.sent[run] = f.Seq
		f.mu.Unlock()
		if err != nil {
			return err
		}
	}
	for i, c := range changed {
		at := int64(0)
		if i == len(changed)-1 {
			at, c.Last = pos, last
		}
		if err := out.addJSON(at, "entry", c); err != nil {
			return err
		}
	}
	return nil
}
