package spec

// onDemand leaves the sandbox to the calls that a rule puts there.
const onDemand = "on-demand"

// OnDemand says that commands run outside the sandbox, unless a rule says
// otherwise.
func (p *Permissions) OnDemand() bool { return p != nil && p.Sandbox == onDemand }

// Boxes says that some rule puts calls into the sandbox.
func (t *Tools) Boxes() bool {
	for _, rule := range t.Rules {
		if rule.Sandbox != "" {
			return true
		}
	}
	return false
}
