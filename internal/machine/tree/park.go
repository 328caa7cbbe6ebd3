package tree

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
)

// Parked is a child that waits for a person, with the id that its run gave it.
type Parked struct {
	Name string
	*event.ChildParked
}

// limit identifies a limit that a child waits for, and the run that has it.
type limit struct{ run, setting string }

// Park returns the event that parks a run that only waits for these children.
func Park(run string, children []Parked) event.RunParked {
	var parked event.RunParked
	var details []string
	var at limit
	var needs []float64
	for _, c := range children {
		parked.Reason = weightier(parked.Reason, c.Reason)
		parked.Until = Sooner(parked.Until, c.Until)
		if of := (limit{run: cmp.Or(c.LimitRun, run), setting: c.ParentLimit}); c.ParentLimit != "" && (at == of || at.setting == "") {
			at, needs = of, append(needs, c.AtLeast)
		}
		details = append(details, waitsFor(c.Name, c.ChildParked))
	}
	if parked.Reason == event.ParkInput && at.setting != "" {
		parked.AtLeast = slices.Min(needs) // enough for one of them to continue
		if at.run == run {
			parked.Limit = at.setting
		} else {
			parked.ParentLimit, parked.LimitRun = at.setting, at.run
		}
	}
	parked.Detail = strings.Join(details, "; ")
	return parked
}

// weightier returns the reason that requires more from a person.
func weightier(a, b event.ParkReason) event.ParkReason {
	for _, r := range []event.ParkReason{event.ParkApproval, event.ParkInput, event.ParkPaused, event.ParkInterrupted} {
		if a == r || b == r {
			return r
		}
	}
	return b
}

// Sooner returns the earlier of two times; nil is never.
func Sooner(a, b *time.Time) *time.Time {
	if a == nil || b != nil && b.Before(*a) {
		return b
	}
	return a
}

// waitsFor describes what a child waits for and which run a person has to act on.
func waitsFor(name string, d *event.ChildParked) string {
	switch {
	case len(d.CallIDs) > 0:
		return fmt.Sprintf("%s (run %s) waits for a decision on %s; decide, then resume this run", name, d.Child, strings.Join(d.CallIDs, ", "))
	case d.Detail != "":
		return fmt.Sprintf("%s (run %s) is parked as %s: %s", name, d.Child, d.Reason, d.Detail)
	}
	return fmt.Sprintf("%s (run %s) is parked as %s", name, d.Child, d.Reason)
}
