package perform

import (
	"bytes"
	"runtime"
	"testing"
	"testing/synctest"
)

// whereabouts does an effect of the workers and returns the goroutine that it was
// done on.
func whereabouts(c *Workers, effect func()) string {
	var name []byte
	c.Do(func() Job {
		name = make([]byte, 64)
		name, _, _ = bytes.Cut(name[:runtime.Stack(name, false)], []byte(" ["))
		effect()
		return nil
	})
	synctest.Wait()
	return string(name)
}

func TestEffectsOneAfterTheOtherShareAGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewWorkers()
		defer c.Stop()
		first := whereabouts(&c, func() {})
		for range 3 {
			if next := whereabouts(&c, func() {}); next != first {
				t.Errorf("done on %s after %s", next, first)
			}
		}
	})
}

func TestStuckEffectBlocksNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewWorkers()
		defer c.Stop()
		stay := make(chan struct{})
		defer close(stay)
		first := whereabouts(&c, func() { <-stay })
		if second := whereabouts(&c, func() {}); second == first || second == "" {
			t.Errorf("done on %q beside %q", second, first)
		}
	})
}

func TestEffectThatEndsItsGoroutineAffectsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewWorkers()
		defer c.Stop()
		first := whereabouts(&c, runtime.Goexit)
		if second := whereabouts(&c, func() {}); second == first || second == "" {
			t.Errorf("done on %q after %q", second, first)
		}
	})
}
