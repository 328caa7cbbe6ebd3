package shell

import (
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
)

// asJudged fails for a command of which something else is found now than what it
// was judged by.
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

// moved reports whether a path of a command leads to another file now than when the
// call was judged. What a pattern of names stands for may have grown meanwhile, or
// shrunk: nothing that was named is another file for that. What a link leads to is
// one, also where the file that it led to is still named besides.
func moved(judged, now []event.PathUse) bool {
	led := slices.ContainsFunc(judged, func(p event.PathUse) bool { return !slices.Contains(now, p) })
	return slices.ContainsFunc(now, func(p event.PathUse) bool {
		return !slices.Contains(judged, p) && (led || !p.Found)
	})
}

// lostReadOnly reports whether a command that was read-only when the call was judged is
// not any more: a program of its name may have been put on the search path.
func lostReadOnly(judged, now []event.Command) bool {
	for i, c := range judged {
		if c.ReadOnly && (i >= len(now) || !now[i].ReadOnly) {
			return true
		}
	}
	return false
}
