package engine

import (
	"sync"
)

// driverLock is what a driver's state belongs to: whoever has it does what is due, and
// nobody else touches the run meanwhile.
//
// The driver's own goroutine has it from the start, and gives it up only while
// it waits for what comes from outside. An effect that has ended takes the lock,
// if nobody has it, and goes on with what follows on the goroutine that did the
// effect. To hand each answer to the driver's goroutine, and each effect to
// another one, is four wake-ups a cycle, and as many caches that are cold.
type driverLock struct {
	free chan struct{}
	// over says that the driver leaves, failure why, if it does not leave
	// because nothing is left to do. From then on the lock stays with the
	// driver's own goroutine.
	over    bool
	failure error

	// settlements are the effects that have ended and whose settlement is not
	// journalled yet, behind as many as were taken up already. news wakes the driver's goroutine: for them, for
	// commands, because it is over, or because there is another moment to wait for.
	mu          sync.Mutex
	settlements []settlement
	taken       int
	wake        chan struct{}
}

func newDriverLock() driverLock {
	return driverLock{free: make(chan struct{}, 1), wake: make(chan struct{}, 1)}
}

func (t *driverLock) unlock() { t.free <- struct{}{} }
func (t *driverLock) lock()   { <-t.free }

func (t *driverLock) tryLock() bool {
	select {
	case <-t.free:
		return true
	default:
		return false
	}
}

// notify wakes the driver's goroutine, now or when it next waits.
func (t *driverLock) notify() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

func (t *driverLock) push(s settlement) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settlements = append(t.settlements, s)
}

// next takes the first of what was brought.
func (t *driverLock) next() (s settlement, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken == len(t.settlements) {
		t.settlements, t.taken = t.settlements[:0], 0
		return settlement{}, false
	}
	s, t.settlements[t.taken] = t.settlements[t.taken], settlement{}
	t.taken++
	return s, true
}
