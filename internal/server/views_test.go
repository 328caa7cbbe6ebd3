package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
)

type entriesPage struct {
	Items   []view.Entry
	Before  string
	Earlier int
	Pos     int64
}

// entries are all entries of a run, read from the end in pages of that size, each before
// those below it.
func (l local) entries(path, parent string, limit int) (all []view.Entry) {
	l.t.Helper()
	before := ""
	for {
		page := gets[entriesPage](l, http.StatusOK, http.MethodGet, fmt.Sprintf("%s/view?limit=%d&parent=%s&before=%s", path, limit, parent, before), "")
		if len(page.Items) > limit || page.Earlier > 0 != (page.Before != "") {
			l.t.Fatalf("a page of %d: %+v", limit, page)
		}
		var part []view.Entry
		for _, n := range page.Items {
			part = append(part, n)
			if n.Below > 0 {
				part = append(part, l.entries(path, n.ID, limit)...)
			}
		}
		all = append(part, all...)
		if before = page.Before; before == "" {
			return all
		}
	}
}

// changes are the entries that a stream sent, by their runs, as the last of each says.
func changes(t *testing.T, frames []frame) map[string]map[string]view.Entry {
	t.Helper()
	runs := map[string]map[string]view.Entry{}
	for _, f := range frames {
		var c struct {
			Run   string
			Entry view.Entry
		}
		if err := json.Unmarshal([]byte(f.data), &c); err != nil || f.kind != "entry" {
			t.Fatal(f.kind, err)
		}
		if runs[c.Run] == nil {
			runs[c.Run] = map[string]view.Entry{}
		}
		runs[c.Run][c.Entry.ID] = c.Entry
	}
	return runs
}

func TestAViewIsReadInPagesFromItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(nil)
		s, _ := newServerOn(t, store, asking())
		l := local{s, t}
		run, path := l.begin("asks")
		l.streamed(path+"/view", "") // until it has ended
		whole := l.entries(path, "", 500)
		for _, limit := range []int{1, 2, 3} {
			if diff := cmp.Diff(whole, l.entries(path, "", limit)); diff != "" {
				t.Errorf("in pages of %d (-whole +pages):\n%s", limit, diff)
			}
		}
		kinds := map[view.Kind]int{}
		for _, n := range whole {
			kinds[n.Kind]++
		}
		if kinds[view.Cycle] != 2 || kinds[view.Call] != 1 || kinds[view.Child] != 1 {
			t.Errorf("the entries are %v", kinds)
		}
		// Another process has the same view.
		other, _ := newServerOn(t, store, asking())
		if diff := cmp.Diff(whole, local{other, t}.entries("/v1/runs/"+run.ID, "", 7)); diff != "" {
			t.Errorf("of another server (-one +other):\n%s", diff)
		}
		l.refuses(http.StatusNotFound, "not-found", http.MethodGet, path+"/view?before=9999", "")
		l.refuses(http.StatusNotFound, "not-found", http.MethodGet, path+"/view?parent=9999", "")
		l.refuses(http.StatusBadRequest, "bad-query", http.MethodGet, path+"/view?tree=true", "")
		l.refuses(http.StatusNotFound, "not-found", http.MethodGet, "/v1/runs/nothing/view", "")
	})
}

func TestAnEntryHasItsBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServer(t, asking())
		l := local{s, t}
		_, path := l.begin("asks")
		l.streamed(path+"/view", "")
		bodies := 0
		for _, n := range l.entries(path, "", 500) {
			body := gets[struct {
				Entry view.Entry
				Parts []view.Part
			}](l, http.StatusOK, http.MethodGet, path+"/view/"+n.ID, "")
			if diff := cmp.Diff(n, body.Entry); diff != "" {
				t.Errorf("the entry of a body (-list +body):\n%s", diff)
			}
			text, err := json.Marshal(body.Parts)
			if err != nil {
				t.Fatal(err)
			}
			want := map[view.Kind]string{view.Call: "it is written", view.Child: "is run "}[n.Kind]
			if want != "" {
				bodies++
			}
			if !strings.Contains(string(text), want) || len(body.Parts) == 0 {
				t.Errorf("the body of %s %s has no %q: %s", n.Kind, n.Name, want, text)
			}
		}
		if bodies != 2 {
			t.Errorf("%d bodies were compared", bodies)
		}
		l.refuses(http.StatusNotFound, "not-found", http.MethodGet, path+"/view/9999", "")
	})
}

// A reader that has a page and hears the stream behind it has at the end what a page of
// the end has, also when its connection was cut at any place; of runs below it as well.
func TestAStreamOfEntriesGivesWhatPagesGive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServer(t, asking())
		l := local{s, t}
		run, path := l.begin("asks")
		time.Sleep(500 * time.Millisecond) // the helper's model thinks
		early := gets[entriesPage](l, http.StatusOK, http.MethodGet, path+"/view", "")
		before := map[string]view.Entry{}
		for _, n := range l.entries(path, "", 500) {
			before[n.ID] = n
		}
		received := l.streamed(path+"/view?tree=true", fmt.Sprint(early.Pos))
		var row journal.Run
		for _, r := range gets[struct{ Items []journal.Run }](l, http.StatusOK, http.MethodGet, path+"/tree", "").Items {
			if r.ID != run.ID {
				row = r
			}
		}
		for of, got := range changes(t, received) {
			if of == run.ID {
				for id, n := range before {
					if _, changed := got[id]; !changed {
						got[id] = n
					}
				}
			}
			for _, n := range l.entries("/v1/runs/"+of, "", 500) {
				if have, known := got[n.ID]; known || of == run.ID {
					if diff := cmp.Diff(n, have); diff != "" {
						t.Errorf("run %s (-page +stream):\n%s", of, diff)
					}
				}
			}
		}
		if got := changes(t, received); len(got) != 2 || len(got[row.ID]) == 0 {
			t.Errorf("entries of %d runs were sent", len(got))
		}
		all := l.streamed(path+"/view", "")
		if got, want := len(changes(t, all)[run.ID]), len(l.entries(path, "", 500)); got != want {
			t.Errorf("a stream from the beginning has %d entries, want %d", got, want)
		}
		for i, f := range received {
			if f.id == "" {
				continue
			}
			again := l.streamed(path+"/view?tree=true", f.id)
			for of, entries := range changes(t, received[i+1:]) {
				for id, n := range entries {
					if diff := cmp.Diff(n, changes(t, again)[of][id]); diff != "" {
						t.Errorf("behind %s (-without a cut +with one):\n%s", f.id, diff)
					}
				}
			}
		}
		if last := received[len(received)-1]; last.id == "" || len(l.streamed(path+"/view", last.id)) > 0 {
			t.Errorf("who has all is sent more: %+v", last)
		}
	})
}

// A reader of a stream with live events has the words before the entry has them.
func TestLiveEventsAreAmongTheEntriesForAReaderThatWantsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServer(t, asking())
		l := local{s, t}
		_, path := l.begin("asks")
		received := l.streamed(path+"/view?tree=true&deltas=true", "")
		texts := slices.DeleteFunc(slices.Clone(received), func(f frame) bool { return f.kind != "text" })
		if len(texts) == 0 || !strings.Contains(texts[len(texts)-1].data, "written") || texts[0].id != "" {
			t.Errorf("the texts are %+v", texts)
		}
		if plain := l.streamed(path+"/view?tree=true", ""); slices.ContainsFunc(plain, func(f frame) bool { return f.kind != "entry" }) {
			t.Error("live events come unasked")
		}
	})
}

// A run that has parked at its own limit is listed with what lets it go on, and leaves the
// list when the limit is raised.
func TestARunAtALimitIsAmongTheQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServer(t, map[string]string{
			"capped.yaml": "identity: {name: capped}\nmodel_policy: {primary: {model: scripted/script.yaml}}\ntools: {allow: [fs.glob]}\nbudgets: {max_model_turns: 1, actions: {max_model_turns: ask}}\n",
			"script.yaml": "- {text: I look., tool_calls: [{name: fs.glob, arguments: {pattern: \"*.txt\"}}]}\n- {text: That is all.}\n",
		})
		l := local{s, t}
		type question struct {
			ID, Kind, Run string
			Path          []string
			What          view.Limit
		}
		for _, list := range []string{"/v1/questions", ""} {
			run, path := l.begin("capped")
			if list == "" {
				list = path + "/questions"
			}
			l.until(path, journal.Parked)
			waiting := gets[struct{ Items []question }](l, http.StatusOK, http.MethodGet, list, "").Items
			want := []question{{"limit-max_model_turns", "limit", run.ID, []string{run.ID}, view.Limit{Run: run.ID, Setting: "max_model_turns", AtLeast: 2}}}
			if diff := cmp.Diff(want, waiting); diff != "" {
				t.Errorf("%s (-want +got):\n%s", list, diff)
			}
			page := gets[struct{ Limit *view.Limit }](l, http.StatusOK, http.MethodGet, path+"/view", "")
			if page.Limit == nil || *page.Limit != want[0].What {
				t.Errorf("the view is at %+v", page.Limit)
			}
			gets[any](l, http.StatusOK, http.MethodPost, path+"/budget", `{"setting": "max_model_turns", "value": 9}`)
			l.until(path, journal.Ended)
			if waiting := gets[struct{ Items []question }](l, http.StatusOK, http.MethodGet, list, "").Items; len(waiting) > 0 {
				t.Errorf("%s: after the raise there wait %+v", list, waiting)
			}
		}
	})
}

// until waits for a run's state.
func (l local) until(path string, state journal.State) {
	l.t.Helper()
	for range 1000 {
		if l.stands(path).State == state {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	l.t.Fatalf("the run is %s, not %s", l.stands(path).State, state)
}

func TestATextIsFoundInAllEventsOfARun(t *testing.T) {
	inBubble(t, twoEach, func(l local, _ string) {
		run := l.flow("asks")
		l.stands("/v1/runs/" + run)
		child := gets[struct{ Items []journal.Run }](l, http.StatusOK, http.MethodGet, "/v1/runs/"+run+"/tree", "").Items[1].ID
		kinds := func(query string) (all []string) {
			for before := ""; ; {
				page := gets[struct {
					Items  []view.Entry
					Before string
				}](l, http.StatusOK, http.MethodGet, "/v1/runs/"+child+"/view?limit=1&"+query+"&before="+before, "")
				for _, n := range page.Items {
					all = append([]string{string(n.Kind)}, all...)
				}
				if before = page.Before; before == "" {
					return all
				}
			}
		}
		for query, want := range map[string][]string{
			"find=ASKED.txt":      {"call", "question"},
			"find=no+such+text":   nil,
			"find=%22askedtxt%22": nil,
		} {
			if diff := cmp.Diff(want, kinds(query)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", query, diff)
			}
		}
		l.refuses(http.StatusBadRequest, "bad-query", http.MethodGet, "/v1/runs/"+child+"/view?find=a&parent=1", "")
	})
}
