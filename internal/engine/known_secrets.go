package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/journal"
)

// SecretsError is what stands against telling a run something: secrets of the
// run are not known here and so could not be kept out of its journal, and no
// process drives the run that could be told in confidence.
type SecretsError struct {
	Run string
	// Missing names the secrets; it is empty where the run's journal does not say
	// which there are.
	Missing []string
	cause   error
}

// Error names the secrets and what can be said all the same.
func (e *SecretsError) Error() string {
	if len(e.Missing) == 0 {
		return fmt.Sprintf("run %s may have secrets that only the program knows which started it, so what it is told might carry them into its journal: "+
			"say it through that program, or in fewer than %d bytes, which are no secret", e.Run, secret.MinLength)
	}
	return fmt.Sprintf("run %s has secrets that cannot be had here, so what it is told might carry them into its journal: %s; give them here as the run has them, "+
		"say it through the program that has them, or say it in fewer than %d bytes, which are no secret", e.Run, strings.Join(e.Missing, ", "), secret.MinLength)
}

// Unwrap is why the run's driver could not be told in confidence.
func (e *SecretsError) Unwrap() error { return e.cause }

// Knowledge is what somebody outside a run knows of its secrets. The zero value
// is nothing.
type Knowledge struct {
	// Secrets are those whose values it has, by the run's names.
	Secrets *secret.Redactor
	// Names are all that the run has by its file; nil where it has none that
	// could say.
	Names []string
}

// knownSecrets are what is known here of the secrets that a run may be told.
type knownSecrets struct {
	// redactors are those of the run first, so that a value which the process
	// knows, too, stands under the name by which the run can use it.
	redactors []*secret.Redactor
	// complete says that the run has no others; missing names some that it has.
	complete bool
	missing  []string
}

// secretsFor are the secrets of the driven run and of its children, for what is
// said to it or to one of those. Where two have a value by different names, it
// stands under one that the run knows to which it is said.
func (env *environment) secretsFor(run string) []*secret.Redactor {
	var all []*secret.Redactor
	if run == env.run.id {
		all = append(all, env.Secrets)
	}
	for _, name := range slices.Sorted(maps.Keys(env.Children)) {
		all = append(all, env.Children[name].Secrets)
	}
	if run != env.run.id {
		all = append(all, env.Secrets)
	}
	return all
}

// knownSecrets are what the driver of a run knows: everything.
func (env *environment) knownSecrets() knownSecrets {
	return knownSecrets{redactors: append(env.secretsFor(env.run.id), env.secrets), complete: true}
}

// knownSecrets are what this engine and the sender of a command know of the
// secrets of the run that the command is for: all of them where the run or its
// parent is driven here or by the sender, else those that the sender has of the
// ones that the run's journal names. A journal is only read for a command that
// may hold one.
func (e *Engine) knownSecrets(ctx context.Context, row journal.Run, from sender, c journal.Command) (knownSecrets, error) {
	known := e.drivenSecrets(ctx, row, from.driver)
	if !known.complete {
		known.redactors = []*secret.Redactor{from.knows.Secrets}
	}
	if !known.complete && MayHoldSecret(c) {
		declared, err := e.declaredSecrets(ctx, row.ID)
		if err != nil {
			return known, err
		}
		known.complete = declared != nil || from.knows.Names != nil
		known.missing = without(append(slices.Clone(declared), from.knows.Names...), from.knows.Secrets.Names())
		known.complete = known.complete && len(known.missing) == 0
	}
	known.redactors = append(known.redactors, e.opts.Secrets)
	return known, nil
}

// without are the names that are not among the others, sorted.
func without(names, others []string) []string {
	names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(others, name) })
	slices.Sort(names)
	return slices.Compact(names)
}

// drivenSecrets are those of the drivers of a run and of the runs above it, where
// they are here, and of the sender that drove one of them.
func (e *Engine) drivenSecrets(ctx context.Context, row journal.Run, from *driver) (known knownSecrets) {
	drivers := []*driver{e.driverOf(row.ID)}
	for at := row.Parent; at != ""; {
		drivers = append(drivers, e.driverOf(at))
		above, err := e.store.Run(ctx, at)
		if err != nil {
			break
		}
		at = above.Parent
	}
	for _, d := range append(drivers, from) {
		if d != nil {
			known.redactors = append(known.redactors, d.env.secretsFor(row.ID)...)
			known.complete = true
		}
	}
	return known
}

// driverOf is the driver of a run, nil where it is not driven here.
func (e *Engine) driverOf(run string) *driver {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.drivers[run]
}

// clean takes the secrets out of a command, and says whether it can be written
// down now.
func (k knownSecrets) clean(c journal.Command) (journal.Command, bool) {
	for _, r := range k.redactors {
		c = drive.RedactCommand(c, r)
	}
	return c, k.complete || !MayHoldSecret(c)
}

// unknown is the error for what could not be written down, nor be sealed.
func (k knownSecrets) unknown(run string, cause error) error {
	return &SecretsError{Run: run, Missing: k.missing, cause: cause}
}

// MayHoldSecret reports whether a command has room for a value of a secret: that it
// carries [secret.MinLength] bytes of text or of arguments, or an attachment.
// Any other can be sent without knowing the run's secrets.
func MayHoldSecret(c journal.Command) bool {
	return max(len(c.Text), len(c.Args)) >= secret.MinLength || len(c.Media) > 0
}

// Redact takes the secrets of a run out of a text that is to be journalled with
// another run that comes of it. It is a *[SecretsError] for a text that may have
// one which is not known here.
func (e *Engine) Redact(ctx context.Context, run string, k Knowledge, text string) (string, error) {
	row, err := e.store.Run(ctx, run)
	if err != nil {
		return "", fmt.Errorf("engine: take secrets out of a text: %w", err)
	}
	c := journal.Command{Text: text}
	known, err := e.knownSecrets(ctx, row, sender{knows: k}, c)
	if err != nil {
		return "", fmt.Errorf("engine: take secrets out of a text: %w", err)
	}
	c, clean := known.clean(c)
	if !clean {
		return "", known.unknown(run, nil)
	}
	return c.Text, nil
}

// declaredSecrets are the names that a journal gives of a run's secrets, nil
// while it gives none: run.started says which there are, and run.resumed where
// they became others.
type declaredSecrets []string

func (d *declaredSecrets) note(data event.Data) {
	switch data := data.(type) {
	case event.RunStarted:
		*d = data.Secrets
	case event.RunResumed:
		if data.Secrets != nil {
			*d = data.Secrets
		}
	}
}

// declaredSecrets are the names of a run's secrets by its journal; nil where
// that does not say which there are.
func (e *Engine) declaredSecrets(ctx context.Context, run string) (declared declaredSecrets, err error) {
	records, err := e.store.Records(ctx, run, 0, 0)
	if err != nil {
		return nil, fmt.Errorf("read the journal of run %s: %w", run, err)
	}
	for _, r := range records {
		if r.Type != string(event.TypeRunStarted) && r.Type != string(event.TypeRunResumed) {
			continue
		}
		ev, err := event.Decode(r.Body)
		if err != nil {
			return nil, fmt.Errorf("read the journal of run %s: %w", run, err)
		}
		declared.note(ev.Data)
	}
	return declared, nil
}

// secretNames are the names of all that is to be kept out of what a run is told:
// its own secrets, those of the agents that it offers, and its parent's. It is
// never nil.
func (e *Engine) secretNames(ctx context.Context, d *driver) []string {
	names := []string{}
	for _, r := range append(d.env.secretsFor(d.run.id), e.drivenSecrets(ctx, journal.Run{ID: d.run.id, Parent: d.run.parent}, nil).redactors...) {
		names = append(names, r.Names()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// otherSecrets are the names of a run's secrets where they are others than its
// journal says, nil where they are the same.
func (e *Engine) otherSecrets(ctx context.Context, d *driver) []string {
	names := e.secretNames(ctx, d)
	if d.log.secrets != nil && slices.Equal(names, d.log.secrets) {
		return nil
	}
	return names
}
