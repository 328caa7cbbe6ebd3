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

// SecretsError is returned for a command that may contain secrets of the run
// which are unknown here, so that they could not be kept out of its journal, if
// no process drives the run to which the command could be sealed.
type SecretsError struct {
	Run string
	// Missing names the secrets; it is empty if the run's journal does not name
	// them.
	Missing []string
	cause   error
}

// Error names the secrets, and says what can be sent all the same.
func (e *SecretsError) Error() string {
	if len(e.Missing) == 0 {
		return fmt.Sprintf("run %s may have secrets that only the program which started it knows, so this text might carry them into its journal: "+
			"say it through that program, or in fewer than %d bytes, which are no secret", e.Run, secret.MinLength)
	}
	return fmt.Sprintf("run %s has secrets that cannot be had here, so this text might carry them into its journal: %s; give them here as the run has them, "+
		"say it through the program that has them, or say it in fewer than %d bytes, which are no secret", e.Run, strings.Join(e.Missing, ", "), secret.MinLength)
}

// Unwrap returns why the command could not be sealed.
func (e *SecretsError) Unwrap() error { return e.cause }

// Knowledge is what a program outside a run knows of the run's secrets. The zero
// value is nothing.
type Knowledge struct {
	// Secrets are those with known values, by the run's names.
	Secrets *secret.Redactor
	// Names lists all secrets of the run's file; nil if there is no such file.
	Names []string
}

// knownSecrets is what is known here of the secrets that a command to a run may
// contain.
type knownSecrets struct {
	// redactors begins with those of the run, so that a value which this process
	// also knows gets the run's name for it.
	redactors []*secret.Redactor
	// complete reports whether the run has no other secrets; missing names some that
	// it has.
	complete bool
	missing  []string
}

// secretsFor returns the redactors of the driven run and of its children, for a
// command to one of them. If two of them name the same value, the name that the
// receiver knows comes first.
func (c *core) secretsFor(run string) []*secret.Redactor {
	var all []*secret.Redactor
	if run == c.run.id {
		all = append(all, c.env.Secrets)
	}
	for _, name := range slices.Sorted(maps.Keys(c.env.Children)) {
		all = append(all, c.env.Children[name].Secrets)
	}
	if run != c.run.id {
		all = append(all, c.env.Secrets)
	}
	return all
}

// knownSecrets returns what the driver of a run knows: everything.
func (c *core) knownSecrets() knownSecrets {
	return knownSecrets{redactors: append(c.secretsFor(c.run.id), c.engine.opts.Secrets), complete: true}
}

// knownSecrets returns what this engine and the sender of a command know of the
// secrets of the run that receives it. They know all of them if the run or its
// parent is driven here or by the sender. Otherwise they know the sender's, of
// those that the run's journal names. The journal is read only for a command
// that may contain a secret.
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

// without returns the names that are not among the others, sorted.
func without(names, others []string) []string {
	names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(others, name) })
	slices.Sort(names)
	return slices.Compact(names)
}

// drivenSecrets returns the secrets of the drivers of a run and of the runs
// above it, if they are in this process, and of the sender that drove one of
// them.
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
			known.redactors = append(known.redactors, d.secretsFor(row.ID)...)
			known.complete = true
		}
	}
	return known
}

// driverOf returns the driver of a run, nil if it is not driven here.
func (e *Engine) driverOf(run string) *driver {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.drivers[run]
}

// clean removes the secrets from a command, and reports whether the command can
// be stored now.
func (k knownSecrets) clean(c journal.Command) (journal.Command, bool) {
	for _, r := range k.redactors {
		c = drive.RedactCommand(c, r)
	}
	return c, k.complete || !MayHoldSecret(c)
}

// unknown is the error for a command that can be neither stored nor sealed.
func (k knownSecrets) unknown(run string, cause error) error {
	return &SecretsError{Run: run, Missing: k.missing, cause: cause}
}

// MayHoldSecret reports whether a command has room for a secret: it carries
// [secret.MinLength] bytes of text or of arguments, or an attachment. Any other
// command can be sent without knowing the run's secrets.
func MayHoldSecret(c journal.Command) bool {
	return max(len(c.Text), len(c.Args)) >= secret.MinLength || len(c.Media) > 0
}

// Redact removes the secrets of a run from a text that another run's journal
// will contain. The error is a *[SecretsError] if the text may contain a secret
// that is unknown here.
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

// declaredSecrets returns the names of a run's secrets in its journal; nil if it
// names none.
func (e *Engine) declaredSecrets(ctx context.Context, run string) (declared drive.DeclaredSecrets, err error) {
	for ev, err := range drive.AsStored(ctx, e.store, run, event.TypeRunStarted, event.TypeRunResumed) {
		if err != nil {
			return nil, fmt.Errorf("read the journal of run %s: %w", run, err)
		}
		declared.Note(ev.Data)
	}
	return declared, nil
}

// secretNames returns the names of all secrets that commands to a run must not
// bring into its journal: its own, those of the agents that it offers, and its
// parent's. It is never nil.
func (e *Engine) secretNames(ctx context.Context, d *driver) []string {
	names := []string{}
	for _, r := range append(d.secretsFor(d.run.id), e.drivenSecrets(ctx, journal.Run{ID: d.run.id, Parent: d.run.parent}, nil).redactors...) {
		names = append(names, r.Names()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// otherSecrets returns the names of a run's secrets if they differ from those in
// its journal, else nil.
func (e *Engine) otherSecrets(ctx context.Context, d *driver) []string {
	names := e.secretNames(ctx, d)
	if d.log.secrets != nil && slices.Equal(names, d.log.secrets) {
		return nil
	}
	return names
}
