package engine

import (
	"context"
	"errors"
	"fmt"
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

// report brings a settlement to the driver's goroutine.
func (s *effects) report(of settlement) {
	s.lock.push(of)
	s.lock.notify()
}

// carryOn brings a settlement and, if nobody has the lock, does what follows from
// it. It returns an effect that is due then, for the goroutine that it is called
// on.
func (d *driver) carryOn(s settlement) (next job) {
	d.lock.push(s)
	if !d.lock.tryLock() {
		d.lock.notify() // who has the lock may have looked already
		return nil
	}
	defer d.lock.unlock()
	if d.lock.over {
		d.lock.notify()
		return nil
	}
	d.step(d.takeNews)
	if d.lock.over || !d.alarm.at.IsZero() {
		d.lock.notify()
	}
	return d.effects.begin(true)
}

// step takes up what has come, and performs everything that is due because of it.
func (d *driver) step(take func(work context.Context) error) {
	d.lock.failure = d.contained(func() error {
		if err := take(d.life.work); err != nil {
			return err
		}
		if err := context.Cause(d.life.ctx); err != nil {
			if err := d.contextEnded(err); err != nil {
				return err
			}
		}
		if err := d.advance(d.life.work); err != nil {
			return err
		}
		d.lock.over = d.finished()
		return nil
	})
	d.lock.over = d.lock.over || d.lock.failure != nil
}

// contained turns a panic into the error that it is to the run. Where code of
// others ends the goroutine instead, nothing is returned to anybody, so the lock
// is over with that, and whoever has the run's goroutine leaves.
func (d *driver) contained(do func() error) (err error) {
	returned := false
	defer func() {
		switch p := recover(); {
		case p != nil:
			err = fmt.Errorf("engine: run %s: %w", d.run.id, newPanicError(p))
		case !returned:
			d.lock.over, d.lock.failure = true, fmt.Errorf("engine: run %s: %w", d.run.id, errEnded)
			d.lock.notify()
		}
	}()
	err = do()
	returned = true
	return err
}

// errEnded is what keeps a run from going on whose tool or model ended the
// goroutine that asked it something.
var errEnded = errors.New("what a tool declares, or a model's adapter, ended the goroutine that drives the run (runtime.Goexit)")

// begin does the effects that were launched, each on a goroutine of its own. The
// last one is returned instead where the caller has a goroutine for it.
func (s *effects) begin(keepLast bool) (last job) {
	launched := s.launched
	if n := len(launched); keepLast && n > 0 {
		launched, last = launched[:n-1], launched[n-1]
	}
	for _, effect := range launched {
		s.workers.do(effect)
	}
	clear(s.launched)
	s.launched = s.launched[:0]
	return last
}
