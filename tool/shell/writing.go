package shell

import (
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/resolve"
)

// writing returns the facts of commands that write a file: of one that names it, and,
// if the sandbox leaves the file writable, of one that does not. What a program without
// a sandbox does is unknown, so policy asks about it whatever it writes.
func (o Options) writing(file string) []event.Facts {
	ws, err := resolve.At(o.Dir)
	if err != nil {
		return nil // check rejects every command
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
