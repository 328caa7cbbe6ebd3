package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/processor"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/sqlite"
)

// A run of 12,000 events is read as fast as a page that shows it needs. The figures are
// the median of five in processor time, after one more, and a fifth above the targets.
func TestLongRunIsReadWithinItsFigures(t *testing.T) {
	if os.Getenv("PAWL_LONG") == "" {
		t.Skip("part of the long suite: PAWL_LONG=1")
	}
	const cycles, calls = 13, 240
	var script strings.Builder
	for cycle := range cycles {
		script.WriteString("- {text: I look., tool_calls: [")
		for call := range calls {
			fmt.Fprintf(&script, `{name: fs.glob, arguments: {pattern: "%d-%d.none"}}, `, cycle, call)
		}
		script.WriteString("]}\n")
	}
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "journal.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	s, _ := newServerOn(t, store, map[string]string{
		"many.yaml": "identity: {name: many}\nmodel_policy: {primary: {model: scripted/many.script.yaml}}\ntools: {allow: [fs.glob]}\nbudgets: {max_tool_calls: none}\n" +
			"iteration: {max_cycles: 50}\n",
		"many.script.yaml": script.String() + "- {text: That is all.}\n",
	})
	l := local{s, t}
	run := gets[journal.Run](l, http.StatusCreated, http.MethodPost, "/v1/runs?wait=300", `{"agent": "many", "input": "go"}`)
	if run.Seq < 12_000 || run.State != journal.Ended {
		t.Fatalf("%d events, %s", run.Seq, run.State)
	}
	for _, figure := range []struct {
		path  string
		bound time.Duration
	}{
		{"", 20 * time.Millisecond},
		{"/view?limit=60", 30 * time.Millisecond},
		{"/view?limit=60&find=no+event+says+this", 500 * time.Millisecond * 12 / 100},
	} {
		var took []time.Duration
		for range 6 {
			w := httptest.NewRecorder()
			began := processor.Time(t)
			l.serve(w, http.MethodGet, "/v1/runs/"+run.ID+figure.path, "")
			took = append(took, processor.Time(t)-began)
			if w.Code != http.StatusOK {
				t.Fatalf("%s: %d", figure.path, w.Code)
			}
		}
		took = took[1:]
		slices.Sort(took)
		t.Logf("%d events, GET /v1/runs/{id}%s: %v of %v", run.Seq, figure.path, took[2], figure.bound)
		if took[2] > figure.bound*6/5 {
			t.Errorf("GET /v1/runs/{id}%s takes %v, more than %v", figure.path, took[2], figure.bound)
		}
	}
}
