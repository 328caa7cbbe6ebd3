package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/pawlrun/pawl/event"
)

// ExportVersion is the version of the format that [Export] writes.
const ExportVersion = 1

// Exported counts the content of an export.
type Exported struct {
	Runs   int `json:"runs"`
	Events int `json:"events"`
	Blobs  int `json:"blobs"`
}

// exportLine is one line of an export: a header first, then for each run its row and
// its events, then contents, and an end, without which the file is truncated.
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

// Export writes a run as JSON lines, with everything that it depends on: the events
// that it shares with the runs it was forked from, the runs that it started, and the
// contents that their events refer to. Events are written in their stored form, with
// their hash chain.
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

// ancestors writes the runs that a fork is based on, as far as it shares their events.
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

// tree writes a run and, after it, its descendants.
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

// event writes a stored event byte for byte, which an encoder would not.
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
