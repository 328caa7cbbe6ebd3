//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"testing"

	"github.com/pawlrun/pawl/internal/host/sandbox"
)

// BenchmarkStart starts the least command there is, with its end and what
// follows it.
func BenchmarkStart(b *testing.B) {
	for _, tier := range tiers {
		b.Run(string(tier), func(b *testing.B) {
			dir := b.TempDir()
			box, err := machine().Open(tier, sandbox.Policy{Workspace: dir})
			if err != nil {
				b.Skip(err)
			}
			defer box.Close()
			for b.Loop() {
				if got := run(b, box, sandbox.Command{Args: []string{"/bin/sh", "-c", "true"}, Dir: dir}); got.Code != 0 {
					b.Fatalf("%+v", got)
				}
			}
		})
	}
}
