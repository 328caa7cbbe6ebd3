package cli

import (
	"slices"
	"strings"

	"github.com/pawlrun/pawl/internal/engine/control"
)

// namesCall reports whether the user's text names the call with this id: the whole
// id, its end after the run's id ("3-1"), or that after a prefix of the run's id
// ("k7x2-3-1").
func namesCall(id, written string) bool {
	if id == written {
		return true
	}
	run, place := cutCall(id)
	begins, end := cutCall(written)
	return end == place && strings.Contains(end, "-") && strings.HasPrefix(run, begins)
}

// cutCall splits a call's id into the run's id and the call's place in the run,
// which is cycle and number.
func cutCall(id string) (run, place string) {
	if i := strings.LastIndexByte(id, '-'); i >= 0 {
		if j := strings.LastIndexByte(id[:i], '-'); j >= 0 {
			return id[:j], id[j+1:]
		}
	}
	return "", id
}

// wholeCall returns the id of the call that the user's text names in a run. A call
// of a descendant needs that run's id, or a unique prefix of it; otherwise an
// answer that is given twice would answer another question. A text that names no
// run is returned unchanged.
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
