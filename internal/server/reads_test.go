package server_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
)

// longRun is an agent that writes a file in each of many cycles and then asks about a
// call.
func longRun(name string, cycles int) map[string]string {
	var script strings.Builder
	for i := range cycles {
		fmt.Fprintf(&script, "- tool_calls: [{name: fs.write, arguments: {path: %s-%d.txt, content: x}}]\n", name, i)
	}
	return map[string]string{
		name + ".yaml": "identity: {name: " + name + "}\nmodel_policy: {primary: {model: scripted/" + name + ".script.yaml}}\nmax_cycles: 10000\n" +
			"tools: {allow: [fs.write, fs.edit], approvals: {fs.edit: always}}\n",
		name + ".script.yaml": script.String() + "- tool_calls: [{name: fs.edit, arguments: {path: " + name + "-1.txt, old_string: x, new_string: y}}]\n- text: the end\n",
	}
}

// Showing a run again reads the events that are new, however long the run is.
func TestShowingARunReadsItsNewEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &counted{Store: memory.New(nil)}
		s, _ := newServerOn(t, store, longRun("long", 60))
		l := local{s, t}
		run, path := l.begin("long")
		synctest.Wait()
		type shown struct {
			journal.Run
			Usage   struct{ Input int64 }
			Waiting []struct{ ID string }
		}
		show := func() (v shown, read int64) {
			store.read.Store(0)
			v = gets[shown](l, http.StatusOK, http.MethodGet, path, "")
			return v, store.read.Load()
		}
		first, all := show()
		if len(first.Waiting) != 1 || first.Seq < 300 || all < first.Seq {
			t.Fatalf("%+v; %d records were read", first, all)
		}
		again, few := show()
		if again.Usage != first.Usage || again.Usage.Input == 0 || len(again.Waiting) != 1 || few != 1 {
			t.Errorf("%d records were read again; %+v", few, again)
		}
		gets[reply](l, http.StatusOK, http.MethodPost, path+"/approve", `{"callId": "`+first.Waiting[0].ID+`"}`)
		synctest.Wait()
		ended, news := show()
		if ended.State != journal.Ended || ended.Usage.Input <= first.Usage.Input || news == 0 || news > ended.Seq-first.Seq {
			t.Errorf("%d records were read of %d new ones; %+v", news, ended.Seq-first.Seq, ended)
		}
		if same, none := show(); same.Usage != ended.Usage || none != 0 {
			t.Errorf("%d records of the ended run were read again; %+v", none, same)
		}
		if err := store.Delete(t.Context(), run.ID); err != nil {
			t.Fatal(err)
		}
		l.refuses(http.StatusNotFound, "not-found", http.MethodGet, path, "")
	})
}

// waitless is a store whose rows do not have what the runs wait for, as those of an
// older version.
type waitless struct{ journal.Store }

func (s waitless) Run(ctx context.Context, id string) (journal.Run, error) {
	row, err := s.Store.Run(ctx, id)
	row.Waits = nil
	return row, err
}

func (s waitless) Runs(ctx context.Context, f journal.Filter) ([]journal.Run, error) {
	rows, err := s.Store.Runs(ctx, f)
	for i := range rows {
		rows[i].Waits = nil
	}
	return rows, err
}

// A list reads rows and the events that ask, and a row of an older version is as good.
func TestListsReadTheQuestionsAndNoMore(t *testing.T) {
	for name, older := range map[string]bool{"this version": false, "an older version": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &counted{Store: memory.New(nil)}
				if older {
					store.Store = waitless{store.Store}
				}
				const runs = 3
				files := map[string]string{}
				for i := range runs { // each with files of its own: what changes nothing ends a run
					maps.Copy(files, longRun(fmt.Sprint("long", i), 20))
				}
				s, _ := newServerOn(t, store, files)
				l := local{s, t}
				var path string
				for i := range runs {
					_, path = l.begin(fmt.Sprint("long", i))
				}
				synctest.Wait()
				type asked struct{ ID, Run, Kind string }
				store.read.Store(0)
				questions := gets[struct{ Items []asked }](l, http.StatusOK, http.MethodGet, "/v1/questions", "").Items
				if len(questions) != runs || questions[0].Kind != "call" || !strings.HasPrefix(questions[0].ID, questions[0].Run) {
					t.Fatalf("these wait: %+v", questions)
				}
				if read := store.read.Load(); !older && read != runs {
					t.Errorf("%d records were read of %d questions", read, runs)
				}
				store.read.Store(0)
				listed := gets[struct{ Items []struct{ Answered bool } }](l, http.StatusOK, http.MethodGet, "/v1/runs", "").Items
				if read := store.read.Load(); !older && read != runs || len(listed) != runs || listed[0].Answered {
					t.Errorf("%d records were read of a list of %+v", read, listed)
				}
				gets[reply](l, http.StatusOK, http.MethodPost, path+"/approve", `{"callId": "`+questions[0].ID+`"}`)
				synctest.Wait()
				if left := gets[struct{ Items []asked }](l, http.StatusOK, http.MethodGet, "/v1/questions", "").Items; len(left) != runs-1 || left[0].ID == questions[0].ID {
					t.Errorf("these still wait: %+v", left)
				}
			})
		})
	}
}
