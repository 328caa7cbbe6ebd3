// Package versions is the table of all machines.
package versions

import (
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/internal/machine/process"
)

// Make returns a new machine of the version that a run's first event records.
func Make(version string) (machine.Machine, error) {
	return machine.Table{
		agent.Version:   func() machine.Machine { return agent.New() },
		flow.Version:    func() machine.Machine { return flow.New() },
		process.Version: func() machine.Machine { return process.New() },
	}.Make(version)
}
