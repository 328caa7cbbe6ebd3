package shell

import (
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
)

// asJudged fails if the facts of a command differ from those by which it was judged.
func asJudged(judged *event.Facts, now event.Facts) error {
	switch {
	case moved(judged.Paths, now.Paths):
		return &tool.Error{Type: event.ErrorConflict,
			Message: "a path of the command leads to another file now than when the call was permitted; make the call again"}
	case lostReadOnly(judged.Commands, now.Commands):
		return &tool.Error{Type: event.ErrorConflict,
			Message: "a command that was known to change nothing when the call was permitted may do more now; make the call again"}
	}
	return nil
}

// moved reports whether a path of a command now leads to another file than when the
// call was judged. Files that match a wildcard may have been added or removed
// meanwhile, which does not count. A link with a new target counts, even if the old
// target is still among the paths.
func moved(judged, now []event.PathUse) bool {
	led := slices.ContainsFunc(judged, func(p event.PathUse) bool { return !slices.Contains(now, p) })
	return slices.ContainsFunc(now, func(p event.PathUse) bool {
		return !slices.Contains(judged, p) && (led || !p.Found)
	})
}

// lostReadOnly reports whether a command that was read-only when the call was judged is
// no longer read-only: a program with its name may have been added to the search path.
func lostReadOnly(judged, now []event.Command) bool {
	for i, c := range judged {
		if c.ReadOnly && (i >= len(now) || !now[i].ReadOnly) {
			return true
		}
	}
	return false
}
