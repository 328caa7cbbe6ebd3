package server

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/host/worktree"
)

// longestPatch is the most bytes of a diff of trees.
const longestPatch = 1 << 20

// treesQuery names two trees of a loop.
type treesQuery struct {
	From string `json:"from,omitempty" jsonschema:"the tree of an iteration, or start; the start when left out"`
	To   string `json:"to,omitempty" jsonschema:"the tree of an iteration, or start; that of the last iteration when left out"`
}

// treeDiff is the difference between two trees of a loop's workspace.
type treeDiff struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Patch is the difference as git prints it, empty if the trees are equal.
	Patch string `json:"patch"`
	// Cut reports that Patch is only its beginning.
	Cut bool `json:"cut,omitempty"`
	// Missing is why there is none.
	Missing string `json:"missing,omitempty"`
}

// showTrees compares the files of a loop's workspace between two iterations.
func (s *Server) showTrees(a *apiRequest[treesQuery, none]) (treeDiff, error) {
	row, err := s.find(a.Request)
	if err != nil {
		return treeDiff{}, err
	}
	started, err := drive.At[event.RunStarted](a.Context(), s.store, row.ID, 0)
	if err != nil {
		return treeDiff{}, err
	}
	names := []string{launch.TreeAtStart}
	for e, err := range drive.AsStored(a.Context(), s.store, row.ID, event.Iteration{}.EventType()) {
		if err != nil {
			return treeDiff{}, err
		}
		if d, is := e.Data.(event.Iteration); is && d.Tree != "" {
			names = append(names, d.Tree)
		}
	}
	d := treeDiff{From: cmp.Or(a.query.From, launch.TreeAtStart), To: cmp.Or(a.query.To, names[len(names)-1])}
	for parameter, name := range map[string]string{"from": d.From, "to": d.To} {
		if !slices.Contains(names, name) {
			return treeDiff{}, kindQuery.problem("give start, or the tree of an item of /v1/runs/"+row.ID+"/iterations", "%s is %q, which is no tree of run %s", parameter, name, row.ID)
		}
	}
	patch, err := launch.DiffTrees(a.Context(), row.ID, started, d.From, d.To)
	switch {
	case errors.Is(err, launch.ErrNoTrees), errors.Is(err, worktree.ErrNoTree):
		d.Missing = control.Plain(err)
	case err != nil:
		return treeDiff{}, err
	case len(patch) > longestPatch:
		patch, d.Cut = patch[:longestPatch], true
	}
	d.Patch = strings.ToValidUTF8(patch, "\uFFFD")
	return d, nil
}
