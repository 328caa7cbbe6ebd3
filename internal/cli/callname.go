package cli

import (
	"slices"
	"strings"

	"github.com/pawlrun/pawl/internal/engine/control"
)

// namesCall reports whether what a user wrote means the call of this id: the whole
// id, its end behind the run's ("3-1"), or that behind a beginning of the run's
// id ("k7x2-3-1").
func namesCall(id, written string) bool {
	if id == written {
		return true
	}
	run, place := cutCall(id)
	begins, end := cutCall(written)
	return end == place && strings.Contains(end, "-") && strings.HasPrefix(run, begins)
}

// cutCall cuts a call's id into that of the run that made it and the call's
// place there, which is cycle and number.
func cutCall(id string) (run, place string) {
	if i := strings.LastIndexByte(id, '-'); i >= 0 {
		if j := strings.LastIndexByte(id[:i], '-'); j >= 0 {
			return id[:j], id[j+1:]
		}
	}
	return "", id
}

// wholeCall is the id of the call that a user means who wrote it for a run. A
// call of a run below this one has to be written with that run's id, or
// with a beginning of it that only that one has: else an answer that is given
// twice would be one to another question. What names no run stays as it is.
func wholeCall(run string, below []control.Below, written string) (string, error) {
	begins, place := cutCall(written)
	var fits []string
	for _, child := range below {
		switch {
		case child.ID == begins:
			return written, nil
		case strings.HasPrefix(child.ID, begins):
			fits = append(fits, child.ID)
		}
	}
	switch {
	case strings.HasPrefix(run, begins):
		return run + "-" + place, nil
	case len(fits) > 1:
		slices.Sort(fits)
		return "", usagef("call %q may be one of several runs below run %s: %s; write the whole id", written, run, strings.Join(fits, ", "))
	case len(fits) == 1:
		return fits[0] + "-" + place, nil
	}
	return written, nil
}
