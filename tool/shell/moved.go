package shell

import (
	"slices"

	"github.com/pawlrun/pawl/event"
)

// moved says that a path of a command leads to another file now than when the
// call was judged. What a pattern of names stands for may have grown meanwhile, or
// shrunk: nothing that was named is another file for that. What a link leads to is
// one, also where the file that it led to is still named besides.
func moved(judged, now []event.PathUse) bool {
	led := slices.ContainsFunc(judged, func(p event.PathUse) bool { return !slices.Contains(now, p) })
	return slices.ContainsFunc(now, func(p event.PathUse) bool {
		return !slices.Contains(judged, p) && (led || !p.Found)
	})
}

// looked says that a command which was known only to look when the call was judged
// is not any more: a program of its name may have been put where it is looked for.
func looked(judged, now []event.Command) bool {
	for i, c := range judged {
		if c.ReadOnly && (i >= len(now) || !now[i].ReadOnly) {
			return true
		}
	}
	return false
}
