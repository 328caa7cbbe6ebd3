package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A loop that finds another one at work in its workspace names the run of that one, and
// not a run that has ended there.
func TestALoopNamesTheRunThatHoldsItsWorkspace(t *testing.T) {
	p := held(t, "maxIterations: 1")
	ended := ""
	for range 2 {
		first := p.startWaiting()
		holds := p.newestRoot()
		if holds == ended {
			t.Fatal("the second loop is the first one")
		}
		refused := p.exits(2, "run", "agent.yaml", "Try.").err
		if !strings.Contains(refused, "another refinement loop is at work in this workspace (run "+holds+", process ") || ended != "" && strings.Contains(refused, ended) {
			t.Errorf("run %s holds the workspace, and the refusal is %q", holds, refused)
		}
		p.write("go", "")
		first.wait()
		for _, name := range []string{"go", "started"} {
			if err := os.Remove(filepath.Join(p.dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		ended = holds
	}
}
