package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/host/workplace"
	"github.com/pawlrun/pawl/internal/server"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/sqlite"
)

// machine is a server of a shared journal on a machine of its own.
type machine struct {
	local
	t     *testing.T
	dir   string
	store journal.Store
	stop  func() error
}

// machineOn starts a server of the journal at a path on a machine with a name.
func machineOn(t *testing.T, path, host string, labels ...string) machine {
	t.Helper()
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	s, dir := newServerWith(t, store, writing, func(o *server.Options) {
		o.Launch.Here = workplace.Here{Host: host, Labels: labels, Workspace: o.Launch.Workspace, Clones: t.TempDir(), Env: os.Environ()}
	})
	_, stop := serving(t, s)
	m := machine{local{s, t}, t, dir, store, stop}
	return m
}

func (m machine) begin(body string) journal.Run {
	m.t.Helper()
	return gets[journal.Run](m.local, http.StatusCreated, http.MethodPost, "/v1/runs", body)
}

// until waits for a state of a run's row.
func (m machine) until(run string, so func(journal.Run) bool) (row journal.Run) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), 2*time.Minute)
	defer cancel()
	changed := m.store.Watch(ctx)
	for {
		row, err := m.store.Run(m.t.Context(), run)
		if err != nil {
			m.t.Fatal(err)
		}
		if so(row) {
			return row
		}
		select {
		case <-changed:
		case <-time.After(time.Second):
		case <-ctx.Done():
			m.t.Fatalf("after two minutes the run is %s (%s)", row.State, row.Detail)
		}
	}
}

func (m machine) wrote(dir string) bool {
	m.t.Helper()
	_, err := os.Stat(filepath.Join(dir, "asked.txt"))
	return err == nil
}

// approve approves the call of a parked run at this server.
func (m machine) approve(run string) {
	m.t.Helper()
	row, err := m.store.Run(m.t.Context(), run)
	if err != nil || row.Waits == nil || len(row.Waits.Questions) != 1 {
		m.t.Fatalf("the run asks %+v, %v", row.Waits, err)
	}
	w := httptest.NewRecorder()
	m.serve(w, http.MethodPost, "/v1/runs/"+run+"/approve", `{"callId": "`+row.Waits.Questions[0].ID+`"}`)
	if w.Code != http.StatusOK && w.Code != http.StatusAccepted {
		m.t.Fatalf("status %d: %s", w.Code, w.Body)
	}
}

func is(state journal.State, detail string) func(journal.Run) bool {
	return func(r journal.Run) bool { return r.State == state && (detail == "" || r.Detail == detail) }
}

func TestRunWaitsForAWorkerWithItsLabel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	one := machineOn(t, path, "one")
	const waits = "no worker has the label gpu"
	run := one.begin(`{"agent": "writes", "input": "go", "workspace": {"label": "gpu"}}`)
	if run.State != journal.Waiting || run.Detail != waits {
		t.Errorf("the run is %s (%s), want waiting (%s)", run.State, run.Detail, waits)
	}
	list := gets[struct{ Items []journal.Run }](one.local, http.StatusOK, http.MethodGet, "/v1/runs?state=waiting", "")
	if len(list.Items) != 1 || list.Items[0].Detail != waits {
		t.Errorf("the list has %+v", list.Items)
	}
	if v, err := journal.Verify(t.Context(), one.store, run.ID, run.Head); err != nil {
		t.Errorf("%+v, %v", v, err)
	}
	labelled := t.TempDir()
	two := machineOn(t, path, "two", "gpu="+labelled)
	two.until(run.ID, is(journal.Parked, string(event.ParkApproval)))
	// The decision is made at the server that does not have the place.
	one.approve(run.ID)
	two.until(run.ID, is(journal.Ended, ""))
	if !two.wrote(labelled) || two.wrote(two.dir) || one.wrote(one.dir) {
		t.Error("the run did not work in the directory of the label")
	}
	// A second run begins at once where it is, as does one at the server that has it.
	for _, at := range []machine{one, two} {
		next := at.begin(`{"agent": "writes", "input": "go", "workspace": {"label": "gpu"}}`)
		two.until(next.ID, is(journal.Parked, string(event.ParkApproval)))
	}
}

func TestRunIsNotDrivenOnAnotherHost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	one, two := machineOn(t, path, "one"), machineOn(t, path, "two")
	run := one.begin(`{"agent": "writes", "input": "go"}`)
	one.until(run.ID, is(journal.Parked, string(event.ParkApproval)))
	if err := one.stop(); err != nil {
		t.Fatal(err)
	}
	const waits = "no worker has the host one"
	two.approve(run.ID)
	two.until(run.ID, is(journal.Waiting, waits))
	if err := two.stop(); err != nil {
		t.Fatal(err)
	}
	two = machineOn(t, path, "two") // another look at what the last server left
	two.until(run.ID, is(journal.Waiting, waits))
	again := machineOn(t, path, "one")
	again.until(run.ID, is(journal.Ended, ""))
	if again.wrote(two.dir) || !again.wrote(one.dir) {
		t.Error("the run worked on another host")
	}
}

func TestRunWorksInACloneOfItsOwn(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	repo := t.TempDir()
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"commit", "-q", "--allow-empty", "-m", "first"}, {"branch", "other"}} {
		cmd := exec.Command("git", append([]string{"-C", repo, "-c", "user.name=x", "-c", "user.email=x@x"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	path := filepath.Join(t.TempDir(), "journal.db")
	one := machineOn(t, path, "one")
	dirs := map[string]bool{}
	for _, ref := range []string{"", "other"} {
		run := one.begin(`{"agent": "writes", "input": "go", "workspace": {"repo": "` + repo + `", "ref": "` + ref + `"}}`)
		started, err := drive.At[event.RunStarted](t.Context(), one.store, run.ID, 0)
		if err != nil || started.Place != (event.Place{Host: "one", Repo: repo, Ref: ref}) {
			t.Fatalf("%+v, %v", started.Place, err)
		}
		one.until(run.ID, is(journal.Parked, string(event.ParkApproval)))
		one.approve(run.ID)
		one.until(run.ID, is(journal.Ended, ""))
		if _, err := os.Stat(filepath.Join(started.Workspace, ".git")); err != nil || !one.wrote(started.Workspace) || dirs[started.Workspace] {
			t.Errorf("%s is no clone of the run's own: %v", started.Workspace, err)
		}
		dirs[started.Workspace] = true
	}
	for body, want := range map[string]string{
		`{"repo": "` + repo + `", "ref": "none"}`:       "clone",
		`{"repo": "ext::sh -c 'touch ` + path + `.x'"}`: "clone",
		`{"repo": "--upload-pack=touch"}`:               "begin with",
		`{"host": "one", "label": "gpu"}`:               "exclude",
		`{"ref": "main"}`:                               "needs a repo",
	} {
		w := httptest.NewRecorder()
		one.serve(w, http.MethodPost, "/v1/runs", `{"agent": "writes", "input": "go", "workspace": `+body+`}`)
		if w.Code/100 != 4 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: status %d: %s", body, w.Code, w.Body)
		}
	}
	if _, err := os.Stat(path + ".x"); err == nil {
		t.Error("the repository started a program")
	}
}
