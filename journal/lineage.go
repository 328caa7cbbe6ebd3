package journal

import (
	"context"
	"fmt"
	"slices"
)

// Stretch is a part of a run's events that one run wrote: those after From, up
// to To.
type Stretch struct {
	Run      string
	From, To int64
}

// Lineage returns which run wrote which of a run's events, from the first on.
// The last stretch is the run's own and ends with its last event. Before it are
// those of its ancestors, if it is a fork.
func Lineage(ctx context.Context, s Store, run string) ([]Stretch, error) {
	var line []Stretch
	end := int64(-1)
	for id := run; id != ""; {
		row, err := s.Run(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("journal: the line of run %s: %w", run, err)
		}
		if end < 0 {
			end = row.Seq
		}
		if row.ForkSeq < end || end == 0 {
			line = append(line, Stretch{Run: id, From: row.ForkSeq, To: end})
		}
		end, id = min(end, row.ForkSeq), row.ForkOf
	}
	slices.Reverse(line)
	return line, nil
}

// Below returns the rows of a run and its descendants from the rows of a tree, in which
// ancestors come first.
func Below(tree []Run, run string) []Run {
	within := map[string]bool{run: true}
	return slices.DeleteFunc(slices.Clone(tree), func(r Run) bool {
		within[r.ID] = within[r.ID] || within[r.Parent]
		return !within[r.ID]
	})
}

// ownerOf returns the run that wrote an event; later events belong to the newest.
func ownerOf(line []Stretch, seq int64) string {
	for _, s := range line {
		if seq <= s.To {
			return s.Run
		}
	}
	return line[len(line)-1].Run
}
