package sandbox_test

import (
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/pawlrun/pawl/sandbox"
)

func TestQuick(t *testing.T) {
	m := sandbox.Detect(t.Context(), shim)
	for _, f := range m.Findings() {
		fmt.Printf("%+v\n", f)
	}
	for _, tier := range []sandbox.Tier{sandbox.Bubblewrap, sandbox.Landlock} {
		dir := t.TempDir()
		b, err := m.Open(tier, sandbox.Policy{Workspace: dir})
		if err != nil {
			t.Error(err)
			continue
		}
		r, w, _ := os.Pipe()
		p, err := b.Start(sandbox.Command{Args: []string{"/bin/sh", "-c", os.Getenv("CMD")}, Dir: dir, Env: os.Environ(), Output: w})
		w.Close()
		if err != nil {
			t.Error(err)
			continue
		}
		out, _ := io.ReadAll(r)
		<-p.Ended()
		e, err := p.Wait()
		fmt.Printf("%s: %+v %v\n%s\n", tier, e, err, out)
		b.Close()
	}
}
