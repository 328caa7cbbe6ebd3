package cli

import (
	"testing"

	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/journal"
)

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

func TestAChildsCallIsNamedOnlyWithTheChild(t *testing.T) {
	var children []control.Below
	for _, id := range []string{"def", "abz", "ghi", "ghj"} {
		children = append(children, control.Below{Run: journal.Run{ID: id}})
	}
	for written, want := range map[string]string{
		"1-1": "abc-1-1", "11-2": "abc-11-2", "a-1-1": "abc-1-1", "ab-1-1": "abc-1-1", "abc-1-1": "abc-1-1",
		"d-1-1": "def-1-1", "def-3-1": "def-3-1", "abz-1-1": "abz-1-1", "ghj-4-1": "ghj-4-1",
		"gh-4-1": "", "c-1-1": "c-1-1", "defg-1-1": "defg-1-1",
	} {
		if got, err := wholeCall("abc", children, written); got != want || (err == nil) != (want != "") {
			t.Errorf("%q means %q, %v; want %q", written, got, err, want)
		}
	}
	// An embedding program may give runs ids of its own.
	if got, err := wholeCall("may-12", []control.Below{{Run: journal.Run{ID: "may"}}}, "may-2-1"); got != "may-2-1" || err != nil {
		t.Errorf("a child's whole id means %q, %v", got, err)
	}
}
