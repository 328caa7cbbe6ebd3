package shell

import (
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/resolve"
)

// writing are the facts of the commands that write a file: of one that names it,
// and, where the sandbox leaves it open, of one that does not say so. What a
// program does without a sandbox is not known, so policy asks about it whatever
// it writes.
func (o Options) writing(file string) []event.Facts {
	ws, err := resolve.At(o.Dir)
	if err != nil {
		return nil // check refuses every command
	}
	var calls []event.Facts
	for _, name := range ws.Names(file) {
		name.Write = true
		named := o.withProtection(event.Facts{Paths: []event.PathUse{name}, Risk: event.RiskWrite, Unsandboxed: !o.Inside})
		if o.Sandbox == nil || o.OnDemand || o.Sandbox.MayWrite(o.at(name), o.grants(&named)...) {
			calls = append(calls, named)
		}
		if o.Sandbox != nil && o.Sandbox.MayWrite(o.at(name)) {
			calls = append(calls, event.Facts{Risk: event.RiskUnknown, Unsandboxed: !o.Inside})
		}
	}
	return calls
}
