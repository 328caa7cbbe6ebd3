package agent_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/internal/machine/agent"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// scenario is one story of a run: what comes from outside, in order. What the
// machine makes of it is in the golden file.
type scenario struct {
	name string
	cfg  agent.Config
	play func(p *play)
}

// golden plays scenarios and compares their listings with testdata/NAME.golden.
// In a listing each event stands behind its time in seconds; "<" marks what
// happened outside, ">" what the run waits for.
func golden(t *testing.T, name string, scenarios []scenario) {
	t.Helper()
	var all bytes.Buffer
	for _, s := range scenarios {
		ok := t.Run(s.name, func(t *testing.T) {
			p := newPlay(t, s.cfg)
			s.play(p)
			p.check()
			fmt.Fprintf(&all, "-- %s --\n%s", s.name, p.log.Bytes())
		})
		if !ok {
			return
		}
	}
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, all.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), all.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}
