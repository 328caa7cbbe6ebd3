package evaluation

import (
	"math"
	"testing"
)

func TestPassAtKIsTheShareOfChoicesThatContainAPass(t *testing.T) {
	for _, c := range []struct {
		n, c, k int
		want    float64
	}{{4, 0, 1, 0}, {4, 1, 1, 0.25}, {4, 1, 4, 1}, {4, 2, 2, 5.0 / 6}, {5, 5, 1, 1}, {10, 3, 5, 1 - 21.0/252}} {
		if got := passAt(c.n, c.c, c.k); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("pass@%d with %d of %d is %v, want %v", c.k, c.c, c.n, got, c.want)
		}
	}
}
