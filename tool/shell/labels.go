package shell

import (
	"encoding/json"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/resolve"
)

// labels returns the labels of a command. It may read whatever this user may. Its
// output is as trusted as the workspace, unless it is known to talk to another machine;
// and it may talk to one unless it is known to change nothing, or runs in a sandbox
// without a network. If a later rule decides which calls run in the sandbox, all count
// as running outside.
func (o Options) labels(_ json.RawMessage, facts *event.Facts) event.Labels {
	l := event.Labels{Private: true, Untrusted: true, Outgoing: true}
	if facts != nil {
		l.Untrusted = resolve.Sends(*facts)
		l.Outgoing = facts.Risk != event.RiskRead || len(facts.Unclear) > 0
	}
	if o.Offline {
		l.Untrusted, l.Outgoing = false, false
	}
	return l
}
