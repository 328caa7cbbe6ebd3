package spec

import "github.com/pawlrun/pawl/internal/files/decode"

// RunnerProblems are what is wrong with the runner of a loop.
func RunnerProblems(c *Runner) decode.Errors {
	var r decode.Report
	c.validate(&r, "loop.runner")
	return r.Problems.Sorted()
}
