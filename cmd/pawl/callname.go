package main

import "strings"

// namesCall says that what a user wrote means the call of this id: the whole
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
