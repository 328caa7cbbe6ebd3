package place

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestWhatAMachineLacks(t *testing.T) {
	const most = 1 << 62
	for _, tt := range []struct {
		name, dir    string
		memory, disk uint64
		want         string
	}{
		{"nothing", t.TempDir(), 1, 1, ""},
		{"memory", t.TempDir(), most, 1, "memory: "},
		{"disk", t.TempDir(), 1, most, "disk: "},
		{"what cannot be read", filepath.Join(t.TempDir(), "missing"), 1, most, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.memory == most && runtime.GOOS != "linux" {
				t.Skip("the free memory is known on Linux alone")
			}
			if got := lacking(tt.dir, tt.memory, tt.disk); got != tt.want && (tt.want == "" || !strings.HasPrefix(got, tt.want)) {
				t.Errorf("lacks %q, want %q", got, tt.want)
			}
		})
	}
}
