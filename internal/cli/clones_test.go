package cli

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/journal"
)

// inRepository is a project whose runs do a turn in a repository of one file.
func inRepository(t *testing.T, turn string) project {
	p := newProject(t, map[string]string{
		"agent.yaml":  strings.ReplaceAll(asksAgent, "{shell.exec: always}", "{shell.exec: never}"),
		"script.yaml": turn + "- text: the end\n",
		"repo/file":   "of the repository\n",
	})
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"commit", "-q", "-m", "first"}} {
		cmd := exec.Command("git", append([]string{"-C", filepath.Join(p.dir, "repo"), "-c", "user.name=x", "-c", "user.email=x@x"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return p
}

// cloning is the request of a run that works in a clone of the repository.
func (p project) cloning() string {
	return `{"agent": "asks", "input": "go", "workspace": {"repo": "` + filepath.Join(p.dir, "repo") + `"}}`
}

func clonesOf(t *testing.T, data, run string) []string {
	t.Helper()
	clones, err := filepath.Glob(filepath.Join(data, "pawl", "clones", run+"-*"))
	if err != nil {
		t.Fatal(err)
	}
	return clones
}

// A removed run leaves no clone, however it is removed. Those of other runs stay.
func TestWithARunItsCloneIsRemoved(t *testing.T) {
	p, data := inRepository(t, ""), t.TempDir()
	s := p.serve("XDG_DATA_HOME=" + data)
	var runs []string
	for range 4 {
		r := asks[journal.Run](s, http.StatusCreated, http.MethodPost, "/v1/runs", p.cloning())
		s.reaches(r.ID, journal.Ended)
		runs = append(runs, r.ID)
	}
	have := func(after string, want ...int) {
		t.Helper()
		for i, run := range runs {
			if got := len(clonesOf(t, data, run)); got != want[i] {
				t.Errorf("after %s run %d has %d clones, want %d", after, i, got, want[i])
			}
		}
	}
	pawl := func(args ...string) {
		t.Helper()
		if f := p.startWith([]string{"XDG_DATA_HOME=" + data}, append([]string{"runs"}, args...)...).wait(); f.code != 0 {
			t.Fatalf("%v: exit code %d: %s", args, f.code, f.err)
		}
	}
	have("the start", 1, 1, 1, 1)
	asks[struct{}](s, http.StatusOK, http.MethodPost, "/v1/runs/"+runs[0]+"/remove", "")
	have("a request", 0, 1, 1, 1)
	pawl("rm", runs[1])
	have("pawl runs rm", 0, 0, 1, 1)
	pawl("prune", "--older-than", "0s", "--dry-run")
	have("a dry run", 0, 0, 1, 1)
	pawl("prune", "--older-than", "0s")
	have("pawl runs prune", 0, 0, 0, 0)
	s.stop()
}

// The commands of a run that works in a clone read and write the clone in each tier of the
// sandbox. The second run has a clone of its own.
func TestCommandsWorkInACloneInEachTier(t *testing.T) {
	for _, tier := range []string{"bubblewrap", "namespaces", "landlock", "none"} {
		t.Run(tier, func(t *testing.T) {
			if works, err := tierWorks("tier:" + tier); tier != "none" && (err != nil || !works) {
				t.Skipf("the tier %s does not work on this machine: %v", tier, err)
			}
			p, data := inRepository(t, shellTurn("cat file >>copy && pwd >>copy")), t.TempDir()
			s := p.serve(sandboxVariable+"="+tier, "XDG_DATA_HOME="+data)
			for range 2 {
				r := asks[journal.Run](s, http.StatusCreated, http.MethodPost, "/v1/runs", p.cloning())
				s.reaches(r.ID, journal.Ended)
				clones := clonesOf(t, data, r.ID)
				if len(clones) != 1 {
					t.Fatalf("the clones of run %s are %v", r.ID, clones)
				}
				if text, err := os.ReadFile(filepath.Join(clones[0], "copy")); err != nil || string(text) != "of the repository\n"+clones[0]+"\n" {
					t.Errorf("the command wrote %q, %v", text, err)
				}
			}
			s.stop()
		})
	}
}
