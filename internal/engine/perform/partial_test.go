package perform

import (
	"strings"
	"testing"
)

func TestWhatABrokenAttemptHadSaidIsKeptUpToABound(t *testing.T) {
	for _, c := range []struct {
		text string
		keep int
	}{
		{"short", 5}, {strings.Repeat("x", maxPartialText), maxPartialText}, {strings.Repeat("x", maxPartialText+1), maxPartialText},
		{strings.Repeat("x", maxPartialText-1) + "ż", maxPartialText - 1},
	} {
		if got := clipped(c.text, maxPartialText); got != c.text[:c.keep] {
			t.Errorf("of %d bytes %d are kept, want %d", len(c.text), len(got), c.keep)
		}
	}
}
