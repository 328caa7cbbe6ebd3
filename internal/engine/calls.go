package engine

import "github.com/pawlrun/pawl/internal/engine/drive"

// calls starts the effects that a machine asks for: calls of models, tools, hooks and
// commands, each behind its intent.
type calls struct {
	*core
	above    *parentRun
	requests drive.Requests
	// given is the first cycle whose messages of the environment ([Env.Inputs])
	// have not been journalled.
	given int
}

// giveInputs journals the messages of the environment up to a cycle whose answer
// is on the way, as if they had come meanwhile: they are there when it is decided
// what follows on the answer.
func (cs *calls) giveInputs(cycle int) error {
	for ; cs.given <= cycle; cs.given++ {
		for _, said := range cs.env.Inputs[cs.given] {
			if err := cs.stage(cs.env.record.Blobs.Detach(said)); err != nil {
				return err
			}
		}
	}
	return nil
}
