package engine

import (
	"errors"
	"maps"
	"slices"

	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/secret"
)

// ErrSecretsUnknown is returned for what a child is to be told that may hold a
// secret of it, where neither the sender nor anybody who drives the child or its
// parent could take that out.
var ErrSecretsUnknown = errors.New("engine: this may hold a secret of the run, which only the program that started it knows; say it through that program")

// knownSecrets are what is known here of the secrets that a run may be told.
type knownSecrets struct {
	redactors []*secret.Redactor
	// complete says that the run has no others: they are those of its own
	// environment or of its parent's.
	complete bool
}

// secretsFor are the secrets of the driven run and of its children, for what is
// said to it or to one of those. Where two have a value by different names, it
// stands under one that the run knows to which it is said.
func (d *driver) secretsFor(run string) []*secret.Redactor {
	var all []*secret.Redactor
	if run == d.run {
		all = append(all, d.env.Secrets)
	}
	for _, name := range slices.Sorted(maps.Keys(d.env.Children)) {
		all = append(all, d.env.Children[name].Secrets)
	}
	if run != d.run {
		all = append(all, d.env.Secrets)
	}
	return all
}

// knownSecrets are what the driver of a run knows: everything.
func (d *driver) knownSecrets() knownSecrets {
	return knownSecrets{redactors: d.secretsFor(d.run), complete: true}
}

// knownSecrets are what this engine and the sender of a command, nil where that
// has no run, know of the secrets of the run that the command is for. Those of a
// run that is nobody's child are the sender's to take out, as its file names them.
func (e *Engine) knownSecrets(row journal.Run, sender *driver) knownSecrets {
	e.mu.Lock()
	defer e.mu.Unlock()
	known := knownSecrets{complete: row.Parent == ""}
	for _, d := range []*driver{e.drivers[row.ID], e.drivers[row.Parent], sender} {
		if d != nil {
			known.redactors = append(known.redactors, d.secretsFor(row.ID)...)
			known.complete = true
		}
	}
	return known
}

// clean takes the secrets out of a command, and says whether it can be written
// down now.
func (k knownSecrets) clean(c journal.Command) (journal.Command, bool) {
	for _, r := range k.redactors {
		c = RedactCommand(c, r)
	}
	return c, k.complete || !MayHoldSecret(c)
}

// MayHoldSecret says that a command has room for a value of a secret.
func MayHoldSecret(c journal.Command) bool {
	return max(len(c.Text), len(c.Args)) >= secret.MinLength || len(c.Media) > 0
}
