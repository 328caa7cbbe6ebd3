package perform

// Job is work on an effect. It returns the next job for its goroutine, nil for none.
type Job func() (next Job)

// Workers is a pool of goroutines for a run's effects. An idle goroutine is reused,
// because a new one would have to grow its stack again: a model call goes deep, and comes
// once a cycle.
type Workers struct {
	work chan Job
	over chan struct{}
}

// NewWorkers returns a pool without a goroutine.
func NewWorkers() Workers { return Workers{work: make(chan Job), over: make(chan struct{})} }

// Do runs a job on an idle goroutine, or else on a new one. A job that ends its goroutine
// affects no other job.
func (c *Workers) Do(work Job) {
	select {
	case c.work <- work:
	default:
		go c.serve(work)
	}
}

func (c *Workers) serve(work Job) {
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

// Stop ends the idle goroutines, and the busy ones when they become idle.
func (c *Workers) Stop() { close(c.over) }
