package engine

import "testing"

// What ends after the driver has begun to leave may not be journalled any more,
// though the driver's goroutine has not come back for its lock yet.
func TestAnEffectThatEndsOnceTheRunIsOverOnlyLands(t *testing.T) {
	d := &driver{lock: newDriverLock()}
	d.lock.over = true
	d.lock.unlock()
	if next := d.carryOn(settlement{effect: "late"}); next != nil {
		t.Error("there was something to be done next")
	}
	if s, ok := d.lock.next(); !ok || s.effect != "late" {
		t.Errorf("brought %+v", s)
	}
	if len(d.lock.wake) != 1 || !d.lock.tryLock() {
		t.Error("the driver's goroutine is not woken, or does not get its turn")
	}
}
