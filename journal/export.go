package journal

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/pawlrun/pawl/event"
)

// ExportVersion is the version of the form that [Export] writes.
const ExportVersion = 1

// Exported counts what an export holds.
type Exported struct {
	Runs   int `json:"runs"`
	Events int `json:"events"`
	Blobs  int `json:"blobs"`
}

// exportLine is one line of an export: a header first, then for each run its
// row and its events, then contents, and an end by which a cut file is known.
type exportLine struct {
	Export     int             `json:"pawlExport,omitempty"`
	Vocabulary int             `json:"vocabulary,omitempty"`
	Run        string          `json:"run,omitempty"`
	Row        *Run            `json:"row,omitempty"`
	Pos        int64           `json:"pos,omitempty"`
	Event      json.RawMessage `json:"event,omitempty"`
	Digest     string          `json:"digest,omitempty"`
	Bytes      []byte          `json:"bytes,omitempty"`
	End        *Exported       `json:"end,omitempty"`
}

// Export writes a run as JSON lines, with everything that it depends on: the
// events that it shares with the runs it is a fork of, the runs that it
// started, and the contents that their events refer to. Events are written as
// they are stored, so that [VerifyExport] can check their hash chain.
func Export(ctx context.Context, s Store, run string, w io.Writer) (Exported, error) {
	x := exporter{store: s, w: w, blobs: map[string]bool{}}
	err := x.line(exportLine{Export: ExportVersion, Vocabulary: event.Version, Run: run})
	if err == nil {
		err = x.ancestors(ctx, run)
	}
	if err == nil {
		err = x.tree(ctx, run)
	}
	if err == nil {
		err = x.contents(ctx)
	}
	if err == nil {
		err = x.line(exportLine{End: &x.done})
	}
	if err != nil {
		return x.done, fmt.Errorf("journal: export run %s: %w", run, err)
	}
	return x.done, nil
}

type exporter struct {
	store Store
	w     io.Writer
	done  Exported
	blobs map[string]bool
	order []string
}

func (x *exporter) line(l exportLine) error {
	enc := json.NewEncoder(x.w)
	enc.SetEscapeHTML(false)
	return enc.Encode(l)
}

// ancestors writes the runs that a fork stands on, as far as it shares them.
func (x *exporter) ancestors(ctx context.Context, run string) error {
	line, err := Lineage(ctx, x.store, run)
	if err != nil {
		return err
	}
	for _, part := range line[:len(line)-1] {
		row, err := x.store.Run(ctx, part.Run)
		if err != nil {
			return err
		}
		if err := x.stretch(ctx, row, part.To); err != nil {
			return err
		}
	}
	return nil
}

// tree writes a run and, after it, those that it started.
func (x *exporter) tree(ctx context.Context, run string) error {
	row, err := x.store.Run(ctx, run)
	if err != nil {
		return err
	}
	if err := x.stretch(ctx, row, row.Seq); err != nil {
		return err
	}
	children, err := x.store.Runs(ctx, Filter{Parent: run})
	if err != nil {
		return err
	}
	for _, c := range slices.Backward(children) {
		if err := x.tree(ctx, c.ID); err != nil {
			return err
		}
	}
	return nil
}

// stretch writes a run's row and its own events up to one of them.
func (x *exporter) stretch(ctx context.Context, row Run, to int64) error {
	if err := x.line(exportLine{Row: &row}); err != nil {
		return err
	}
	x.done.Runs++
	for after := row.ForkSeq; after < to; {
		records, err := x.store.Records(ctx, row.ID, after, int(min(verifyPage, to-after)))
		if err != nil {
			return err
		}
		if len(records) == 0 {
			return &CorruptError{Run: row.ID, Seq: after + 1, What: "the event is missing"}
		}
		for _, r := range records {
			if err := x.event(r); err != nil {
				return err
			}
			after = r.Seq
		}
	}
	return nil
}

// event writes a stored event byte for byte: an encoder would write it anew.
func (x *exporter) event(r Record) error {
	e, err := event.Decode(r.Body)
	if err != nil {
		return fmt.Errorf("event %d: %w", r.Seq, err)
	}
	for _, ref := range event.Blobs(e.Data) {
		if !x.blobs[ref.Digest] {
			x.blobs[ref.Digest] = true
			x.order = append(x.order, ref.Digest)
		}
	}
	x.done.Events++
	b := strconv.AppendInt([]byte(`{"pos":`), r.Pos, 10)
	b = append(b, `,"event":`...)
	b = append(append(b, r.Body...), "}\n"...)
	_, err = x.w.Write(b)
	return err
}

func (x *exporter) contents(ctx context.Context) error {
	for _, digest := range x.order {
		content, err := x.store.Blob(ctx, digest)
		if err != nil {
			return err
		}
		if err := x.line(exportLine{Digest: digest, Bytes: content}); err != nil {
			return err
		}
		x.done.Blobs++
	}
	return nil
}

// VerifyExport reads the output of [Export] and checks it as [Verify] checks a
// journal: the exported run, the runs that it started, and every content by its
// digest. A mismatch gives an error that is [ErrCorrupt], an export of a newer
// version one that is [ErrNewer].
func VerifyExport(ctx context.Context, r io.Reader) (Verified, Exported, error) {
	f, err := readExport(r)
	if err != nil {
		return Verified{}, Exported{}, fmt.Errorf("journal: read export: %w", err)
	}
	v, err := Verify(ctx, f, f.run, "")
	for _, id := range f.order {
		if err == nil && f.rows[id].Parent != "" && id != f.run {
			_, err = Verify(ctx, f, id, "")
		}
	}
	return v, f.count, err
}

// exportFile is an export in memory, as much of a [Store] as [Verify] reads.
type exportFile struct {
	Store
	run     string
	order   []string
	rows    map[string]Run
	records map[string][]Record
	blobs   map[string][]byte
	count   Exported
}

func (f *exportFile) Blob(_ context.Context, digest string) ([]byte, error) {
	content, ok := f.blobs[digest]
	if !ok {
		return nil, fmt.Errorf("content %s: %w", digest, ErrNotFound)
	}
	return content, nil
}

func (f *exportFile) Run(_ context.Context, id string) (Run, error) {
	row, ok := f.rows[id]
	if !ok {
		return row, fmt.Errorf("run %s: %w", id, ErrNotFound)
	}
	return row, nil
}

func (f *exportFile) Records(_ context.Context, run string, after int64, limit int) ([]Record, error) {
	row, ok := f.rows[run]
	if !ok {
		return nil, fmt.Errorf("run %s: %w", run, ErrNotFound)
	}
	var out []Record
	if after < row.ForkSeq {
		shared, err := f.Records(context.Background(), row.ForkOf, after, int(row.ForkSeq-after))
		if err != nil {
			return nil, err
		}
		out = shared
	}
	for _, r := range f.records[run] {
		if r.Seq > after {
			out = append(out, r)
		}
	}
	if limit > 0 && len(out) > limit {
		out = out[:limit]
	}
	return out, nil
}

func readExport(r io.Reader) (*exportFile, error) {
	f := &exportFile{rows: map[string]Run{}, records: map[string][]Record{}, blobs: map[string][]byte{}}
	in, current, ended := bufio.NewReader(r), "", false
	for n := 1; ; n++ {
		text, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(text) == 0 {
			break
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		var l exportLine
		if err := json.Unmarshal(text, &l); err != nil {
			return nil, fmt.Errorf("line %d: %w: %w", n, ErrCorrupt, err)
		}
		if ended {
			return nil, fmt.Errorf("line %d: something follows the end: %w", n, ErrCorrupt)
		}
		switch {
		case n == 1 && (l.Export == 0 || l.Run == ""):
			return nil, fmt.Errorf("line 1 is no header: %w", ErrForeign)
		case n == 1 && (l.Export > ExportVersion || l.Vocabulary > event.Version):
			return nil, ErrNewer
		case n == 1:
			f.run = l.Run
		case l.Row != nil:
			// What a fork stands on comes first, so that no line has a circle.
			_, again := f.rows[l.Row.ID]
			if _, ok := f.rows[l.Row.ForkOf]; again || l.Row.ForkOf != "" && !ok {
				return nil, fmt.Errorf("line %d: run %s does not stand on one before it: %w", n, l.Row.ID, ErrCorrupt)
			}
			current = l.Row.ID
			f.rows[current], f.order = *l.Row, append(f.order, current)
			f.count.Runs++
		case l.Event != nil:
			if err := f.add(current, l); err != nil {
				return nil, fmt.Errorf("line %d: %w: %w", n, ErrCorrupt, err)
			}
		case l.Digest != "":
			if !(Blob{Digest: l.Digest, Bytes: l.Bytes}).Intact() {
				return nil, fmt.Errorf("line %d: content %s was changed: %w", n, l.Digest, ErrCorrupt)
			}
			f.blobs[l.Digest] = l.Bytes
			f.count.Blobs++
		case l.End != nil:
			if ended = true; *l.End != f.count {
				return nil, fmt.Errorf("line %d: %+v were written, %+v are there: %w", n, *l.End, f.count, ErrCorrupt)
			}
		}
	}
	if !ended {
		return nil, fmt.Errorf("the file was cut short: %w", ErrCorrupt)
	}
	return f, nil
}

func (f *exportFile) add(run string, l exportLine) error {
	e, err := event.Decode(l.Event)
	if err != nil {
		return err
	}
	f.count.Events++
	f.records[run] = append(f.records[run], Record{Pos: l.Pos, Run: run, Seq: e.Seq, Type: string(e.Type()), Body: l.Event})
	return nil
}
