package engine

import (
	"strings"
	"testing"
	"unsafe"
)

// rows: HAR-6
func TestAnOutputThatFitsIsNeitherCopiedNorHashed(t *testing.T) {
	d := new(driver)
	output := strings.Repeat("é", 30_000)
	if n := testing.AllocsPerRun(10, func() {
		if x := d.excerpt(output, 30_000, false); x.blob != "" || unsafe.StringData(x.text) != unsafe.StringData(output) {
			t.Error("the output was copied")
		}
	}); n != 0 {
		t.Errorf("%g allocations", n)
	}
}
