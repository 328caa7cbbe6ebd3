//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/host/sandbox"
)

// A tier has temporary files of its own, a supervisor alone has none.
func TestASupervisorNeedsNoTemporaryFiles(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "nosuch"))
	m := sandbox.Detect(context.Background(), shim)
	if m.Tier() != sandbox.None {
		t.Errorf("the tier %s works without temporary files", m.Tier())
	}
	if m.Bare() == nil || m.Unsupervised() != "" {
		t.Errorf("there is no supervisor: %s", m.Unsupervised())
	}
	for _, f := range m.Findings() {
		if strings.Contains(f.Why, "no directory for temporary files") && !strings.Contains(f.Help, "TMPDIR") {
			t.Errorf("%s does not work because %s, and the help is %q", f.Tier, f.Why, f.Help)
		}
	}
}

func TestAProgramThatCannotSuperviseSaysWhy(t *testing.T) {
	m := sandbox.Strongest(context.Background(), sandbox.Shim{}, "")
	if m.Bare() != nil || !strings.Contains(m.Unsupervised(), "sandbox.Main") {
		t.Errorf("it says %q", m.Unsupervised())
	}
}
