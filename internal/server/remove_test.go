package server_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/journal"
)

// rows: ALDO-64
func TestAnEndedRunIsRemovedWithThoseBelowIt(t *testing.T) {
	inBubble(t, asking(), func(l local, _ string) {
		first, path := l.begin("asks")
		l.refuses(http.StatusConflict, "run-not-ended", http.MethodPost, path+"/remove", "")
		l.until(path, journal.Ended)
		second, other := l.begin("asks")
		l.until(other, journal.Ended)
		fork := gets[journal.Run](l, http.StatusCreated, http.MethodPost, other+"/fork", `{"seq": 3, "run": false}`)
		below := gets[struct{ Items []journal.Run }](l, http.StatusOK, http.MethodGet, path+"/tree", "").Items
		gone := gets[struct{ Removed []string }](l, http.StatusOK, http.MethodPost, path+"/remove", "").Removed
		if want := []string{below[1].ID, first.ID}; !slices.Equal(gone, want) {
			t.Errorf("removed %v, want %v", gone, want)
		}
		l.refuses(http.StatusNotFound, "not-found", http.MethodGet, path, "")
		if p := l.refuses(http.StatusConflict, "run-forked", http.MethodPost, other+"/remove", ""); p.Run != second.ID {
			t.Errorf("the problem is about %q", p.Run)
		}
		if left := gets[struct{ Items []journal.Run }](l, http.StatusOK, http.MethodGet, other+"/tree", "").Items; len(left) != 2 || fork.ID == "" {
			t.Errorf("of the forked run %d are left", len(left))
		}
	})
}

// The entries that a person looks for next, of the whole run in pages.
func TestEntriesAreSelectedByWhatHappened(t *testing.T) {
	inBubble(t, map[string]string{
		"fails.yaml": "identity: {name: fails}\nmodel_policy: {primary: {model: scripted/fails.script.yaml}}\ntools: {allow: [fs.read, fs.write], approvals: {fs.write: always}}\n",
		"fails.script.yaml": "- tool_calls: [{name: fs.read, arguments: {path: none.txt}}]\n- tool_calls: [{name: fs.write, arguments: {path: a.txt, content: x}}]\n" +
			"- tool_calls: [{name: fs.read, arguments: {path: other.txt}}]\n- text: the end\n",
	}, func(l local, _ string) {
		run, path := l.begin("fails")
		l.stands(path)
		gets[reply](l, http.StatusOK, http.MethodPost, path+"/approve", `{"callId": "`+run.ID+`-2-1"}`)
		l.stands(path)
		named := func(only string) (all []string) {
			for before := ""; ; {
				page := gets[struct {
					Items  []view.Entry
					Before string
				}](l, http.StatusOK, http.MethodGet, path+"/view?limit=1&only="+only+"&before="+before, "")
				for _, n := range page.Items {
					all = append([]string{n.Ref}, all...)
				}
				if before = page.Before; before == "" {
					return all
				}
			}
		}
		for only, want := range map[string][]string{
			"failed": {run.ID + "-1-1", run.ID + "-3-1"}, "edited": {run.ID + "-2-1"}, "asked": {run.ID + "-2-1"},
		} {
			if diff := cmp.Diff(want, named(only)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", only, diff)
			}
		}
		l.refuses(http.StatusBadRequest, "bad-query", http.MethodGet, path+"/view?only=good", "")
		l.refuses(http.StatusBadRequest, "bad-query", http.MethodGet, path+"/view?only=failed&find=a", "")

		// The number of any event of an entry names it.
		cycle := gets[struct{ Items []view.Entry }](l, http.StatusOK, http.MethodGet, path+"/view?only=edited", "").Items[0]
		seq := gets[struct{ Entry view.Entry }](l, http.StatusOK, http.MethodGet, path+"/view/"+cycle.ID, "").Entry.Seq
		if got := gets[struct{ Entry view.Entry }](l, http.StatusOK, http.MethodGet, path+"/view/"+fmt.Sprint(seq), "").Entry; got.ID != cycle.ID {
			t.Errorf("event %d names entry %s, want %s", seq, got.ID, cycle.ID)
		}
	})
}
