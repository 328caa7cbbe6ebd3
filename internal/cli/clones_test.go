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

// The commands of a run that works in a clone read and write the clone in each tier of the
// sandbox. The second run has a clone of its own.
func TestCommandsWorkInACloneInEachTier(t *testing.T) {
	for _, tier := range []string{"bubblewrap", "namespaces", "landlock", "none"} {
		t.Run(tier, func(t *testing.T) {
			if works, err := tierWorks("tier:" + tier); tier != "none" && (err != nil || !works) {
				t.Skipf("the tier %s does not work on this machine: %v", tier, err)
			}
			p := newProject(t, map[string]string{
				"agent.yaml":  strings.ReplaceAll(asksAgent, "{shell.exec: always}", "{shell.exec: never}"),
				"script.yaml": shellTurn("cat file >>copy && pwd >>copy") + "- text: the end\n",
				"repo/file":   "of the repository\n",
			})
			for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"commit", "-q", "-m", "first"}} {
				cmd := exec.Command("git", append([]string{"-C", filepath.Join(p.dir, "repo"), "-c", "user.name=x", "-c", "user.email=x@x"}, args...)...)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			data := t.TempDir()
			s := p.serve(sandboxVariable+"="+tier, "XDG_DATA_HOME="+data)
			for range 2 {
				r := asks[journal.Run](s, http.StatusCreated, http.MethodPost, "/v1/runs", `{"agent": "asks", "input": "go", "workspace": {"repo": "`+filepath.Join(p.dir, "repo")+`"}}`)
				s.reaches(r.ID, journal.Ended)
				clones, err := filepath.Glob(filepath.Join(data, "pawl", "clones", r.ID+"-*"))
				if err != nil || len(clones) != 1 {
					t.Fatalf("the clones of run %s are %v, %v", r.ID, clones, err)
				}
				if text, err := os.ReadFile(filepath.Join(clones[0], "copy")); err != nil || string(text) != "of the repository\n"+clones[0]+"\n" {
					t.Errorf("the command wrote %q, %v", text, err)
				}
			}
			s.stop()
		})
	}
}
