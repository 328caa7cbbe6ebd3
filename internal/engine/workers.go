package engine

// job is an effect, which returns what is to be done next on its goroutine, nil
// for nothing.
type job func() (next job)

// workers are the goroutines on which a run's effects are done. One that has
// returned waits for the next effect, because a new one would have to grow its
// stack again: a model call goes deep, and comes once a cycle.
type workers struct {
	work chan job
	over chan struct{}
}

func newWorkers() workers { return workers{work: make(chan job), over: make(chan struct{})} }

// do does an effect on a goroutine that is free, or else on a new one. An
// effect that ends its goroutine takes nobody else with it.
func (c *workers) do(work job) {
	select {
	case c.work <- work:
	default:
		go c.serve(work)
	}
}

func (c *workers) serve(work job) {
	for {
		for work != nil {
			work = work()
		}
		select {
		case work = <-c.work:
		case <-c.over:
			return
		}
	}
}

// stop lets go of those who are free, and of the others once they are.
func (c *workers) stop() { close(c.over) }
