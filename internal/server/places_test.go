package server_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
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
	// clones is the directory for clones.
	clones string
}

// machineOn starts a server of the journal at a path on a machine with a name.
func machineOn(t *testing.T, path, host string, labels ...string) machine {
	t.Helper()
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	clones := t.TempDir()
	s, dir := newServerWith(t, store, writing, func(o *server.Options) {
		o.Launch.Here = workplace.Here{Host: host, Labels: labels, Workspace: o.Launch.Workspace, Clones: clones, Env: os.Environ()}
	})
	_, stop := serving(t, s)
	return machine{local{s, t}, t, dir, store, stop, clones}
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

// repository makes a git repository with the branches main and other.
func repository(t *testing.T) string {
	t.Helper()
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
	return repo
}

func TestRunWorksInACloneOfItsOwn(t *testing.T) {
	repo, path := repository(t), filepath.Join(t.TempDir(), "journal.db")
	one := machineOn(t, path, "one")
	dirs := map[string]bool{}
	for _, ref := range []string{"", "other"} {
		run := one.begin(`{"agent": "writes", "input": "go", "workspace": {"repo": "` + repo + `", "ref": "` + ref + `"}}`)
		one.until(run.ID, is(journal.Parked, string(event.ParkApproval)))
		started, _, err := drive.Began(t.Context(), one.store, run.ID)
		if err != nil || started.Place != (event.Place{Host: "one", Repo: repo, Ref: ref}) {
			t.Fatalf("%+v, %v", started.Place, err)
		}
		one.approve(run.ID)
		one.until(run.ID, is(journal.Ended, ""))
		if _, err := os.Stat(filepath.Join(started.Workspace, ".git")); err != nil || !one.wrote(started.Workspace) || dirs[started.Workspace] {
			t.Errorf("%s is no clone of the run's own: %v", started.Workspace, err)
		}
		dirs[started.Workspace] = true
		next := gets[journal.Run](one.local, http.StatusCreated, http.MethodPost, "/v1/runs/"+run.ID+"/continue", `{"text": "again"}`)
		if again, _, err := drive.Began(t.Context(), one.store, next.ID); err != nil || again.Place != started.Place || again.Workspace != started.Workspace {
			t.Errorf("the run that continues it works on %s in %s, %v", again.Place, again.Workspace, err)
		}
	}
	for body, want := range map[string]string{
		`{"repo": "--upload-pack=touch"}`: "begin with",
		`{"host": "one", "label": "gpu"}`: "exclude",
		`{"ref": "main"}`:                 "needs a repo",
	} {
		w := httptest.NewRecorder()
		one.serve(w, http.MethodPost, "/v1/runs", `{"agent": "writes", "input": "go", "workspace": `+body+`}`)
		if w.Code/100 != 4 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: status %d: %s", body, w.Code, w.Body)
		}
	}
}

// A clone that fails ends its run, and no other server tries again.
func TestRunWhoseCloneFailsEnds(t *testing.T) {
	repo, path := repository(t), filepath.Join(t.TempDir(), "journal.db")
	one, two := machineOn(t, path, "one"), machineOn(t, path, "two")
	for place, want := range map[string]string{
		`{"repo": "` + repo + `", "ref": "none"}`:       "couldn't find remote ref none",
		`{"repo": "` + repo + `.missing"}`:              "does not appear to be a git repository",
		`{"repo": "ext::sh -c 'touch ` + path + `.x'"}`: "not allowed",
	} {
		run := one.begin(`{"agent": "writes", "input": "go", "workspace": ` + place + `}`)
		row := two.until(run.ID, is(journal.Ended, string(event.ReasonNoWorkspace)))
		if text := string(row.Outcome); !strings.Contains(text, "cannot be cloned") || !strings.Contains(text, want) {
			t.Errorf("%s: the outcome %s does not have %q", place, text, want)
		}
		if v, err := journal.Verify(t.Context(), one.store, run.ID, row.Head); err != nil {
			t.Errorf("%s: %+v, %v", place, v, err)
		}
		if shown := gets[journal.Run](one.local, http.StatusOK, http.MethodGet, "/v1/runs/"+run.ID, ""); shown.Seq != row.Seq || shown.Seq != 3 {
			t.Errorf("%s: the run has %d events, want 3", place, shown.Seq)
		}
	}
	for _, m := range []machine{one, two} {
		if left, err := os.ReadDir(m.clones); err != nil && !errors.Is(err, fs.ErrNotExist) || len(left) > 0 {
			t.Errorf("%d failed clones are left, %v", len(left), err)
		}
	}
	if _, err := os.Stat(path + ".x"); err == nil {
		t.Error("the repository started a program")
	}
}

// Whichever machine drives the run first clones the repository. While it is gone, the
// other one does not drive the run.
func TestRunStaysWithItsClone(t *testing.T) {
	repo, path := repository(t), filepath.Join(t.TempDir(), "journal.db")
	machines := map[string]machine{"one": machineOn(t, path, "one"), "two": machineOn(t, path, "two")}
	for _, asked := range []string{"one", "two"} {
		run := machines[asked].begin(`{"agent": "writes", "input": "go", "workspace": {"repo": "` + repo + `"}}`)
		machines[asked].until(run.ID, is(journal.Parked, string(event.ParkApproval)))
		started, _, err := drive.Began(t.Context(), machines[asked].store, run.ID)
		if err != nil || machines[started.Place.Host].t == nil {
			t.Fatalf("the run works on %+v, %v", started.Place, err)
		}
		host, other := started.Place.Host, "one"
		if host == "one" {
			other = "two"
		}
		if err := machines[host].stop(); err != nil {
			t.Fatal(err)
		}
		machines[other].approve(run.ID)
		waits := "no worker has the clone of " + repo + " on the host " + host
		row := machines[other].until(run.ID, is(journal.Waiting, waits))
		if got := gets[journal.Run](machines[other].local, http.StatusOK, http.MethodGet, "/v1/runs/"+run.ID, ""); got.Detail != waits || got.Seq != row.Seq {
			t.Errorf("the run is %s (%s), event %d", got.State, got.Detail, got.Seq)
		}
		machines[host] = machineOn(t, path, host)
		machines[other].until(run.ID, is(journal.Ended, string(event.ReasonFinalAnswer)))
		if !machines[host].wrote(started.Workspace) {
			t.Errorf("the run did not go on in %s", started.Workspace)
		}
	}
}

// With two runs their clones are removed, also one that a killed server did not complete. The
// clone in which another run works stays until that run is removed; those of other journals
// stay.
func TestCloneIsRemovedWithTheLastRunThatWorksThere(t *testing.T) {
	repo, path := repository(t), filepath.Join(t.TempDir(), "journal.db")
	one := machineOn(t, path, "one")
	begin := func(path, body string) string {
		run := gets[journal.Run](one.local, http.StatusCreated, http.MethodPost, path, body).ID
		one.until(run, is(journal.Parked, string(event.ParkApproval)))
		one.approve(run)
		one.until(run, is(journal.Ended, ""))
		return run
	}
	first := begin("/v1/runs", `{"agent": "writes", "input": "go", "workspace": {"repo": "`+repo+`"}}`)
	second := begin("/v1/runs", `{"agent": "writes", "input": "go", "workspace": {"repo": "`+repo+`"}}`)
	next := begin("/v1/runs/"+first+"/continue", `{"text": "again"}`)
	for _, name := range []string{second + "-unfinished", "other-1"} {
		if err := os.Mkdir(filepath.Join(one.clones, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		remove string
		left   map[string]int
	}{
		{"", map[string]int{first: 1, second: 2, "other": 1}},
		{first, map[string]int{first: 1, second: 2, "other": 1}},
		{second, map[string]int{first: 1, "other": 1}},
		{next, map[string]int{"other": 1}},
	} {
		if c.remove != "" {
			gets[struct{}](one.local, http.StatusOK, http.MethodPost, "/v1/runs/"+c.remove+"/remove", "")
		}
		left := map[string]int{}
		dirs, err := os.ReadDir(one.clones)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range dirs {
			run, _, _ := strings.Cut(d.Name(), "-")
			left[run]++
		}
		if !maps.Equal(left, c.left) {
			t.Errorf("after %q was removed there are the clones %v, want %v", c.remove, left, c.left)
		}
	}
}
