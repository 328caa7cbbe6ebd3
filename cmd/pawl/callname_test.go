package main

import "testing"

func TestACallIsNamedByItsIdOrByItsPlaceInARun(t *testing.T) {
	const id = "k7x2abcd-3-1"
	for written, want := range map[string]bool{
		id: true, "3-1": true, "k7x2-3-1": true, "k-3-1": true, "k7x2abcd-3-1-1": false,
		"": false, "1": false, "-1": false, "3-11": false, "13-1": false, "x-3-1": false, "k7x2abcde-3-1": false, "7x2-3-1": false, "k7x2": false,
	} {
		if got := namesCall(id, written); got != want {
			t.Errorf("%q names %s: %t", written, id, got)
		}
	}
	// An embedding program may give runs ids of its own.
	if !namesCall("run-of-may-12-2", "12-2") || !namesCall("run-of-may-12-2", "run-of-12-2") || namesCall("12-2", "2-2") {
		t.Error("an id with dashes is not understood")
	}
}
