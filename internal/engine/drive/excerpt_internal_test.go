package drive

import (
	"strings"
	"testing"
	"unsafe"
)

// rows: HAR-6
func TestAnOutputThatFitsIsNeitherCopiedNorHashed(t *testing.T) {
	d := new(Recorder)
	output := strings.Repeat("é", 30_000)
	if n := testing.AllocsPerRun(10, func() {
		if x := d.Excerpt(output, 30_000, false); x.Blob != "" || unsafe.StringData(x.Text) != unsafe.StringData(output) {
			t.Error("the output was copied")
		}
	}); n != 0 {
		t.Errorf("%g allocations", n)
	}
}
