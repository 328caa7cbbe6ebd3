package engine

import "testing"

// What ends after the driver has begun to leave may not be journalled any more,
// though the driver's goroutine has not come back for its turn yet.
func TestAnEffectThatEndsOnceTheRunIsOverOnlyLands(t *testing.T) {
	d := &driver{turn: newTurn()}
	d.turn.over = true
	d.turn.give()
	if next := d.carryOn(settlement{flight: "late"}); next != nil {
		t.Error("there was something to be done next")
	}
	if s, ok := d.turn.landing(); !ok || s.flight != "late" {
		t.Errorf("brought %+v", s)
	}
	if len(d.turn.news) != 1 || !d.turn.tryTake() {
		t.Error("the driver's goroutine is not woken, or does not get its turn")
	}
}
