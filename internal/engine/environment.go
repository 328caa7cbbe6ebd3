package engine

import (
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/host/secret"
)

// environment is what the effects of a run use. They use it while others hold the
// driver's lock, so nothing in it changes once the run is driven, but for what is safe
// for concurrent use.
type environment struct {
	Env
	run    *identity
	record *drive.Recorder
	clock  *clock
	live   live
	// observers are those of the engine, and secrets what it takes out of all runs.
	observers []Observer
	secrets   *secret.Redactor
}

// equip gives the environment what its run's effects need.
func (env *environment) equip(given Env) {
	env.Env = given
	env.record.Equip(given.Tools, given.Secrets, env.secrets)
}
