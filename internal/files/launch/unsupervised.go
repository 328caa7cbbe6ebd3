package launch

import (
	"fmt"

	"github.com/pawlrun/pawl/tool"
)

// unsupervised warns of commands that run outside a sandbox with nothing beside
// them that ends what they leave behind.
func (o Options) unsupervised(tools *tool.Set) []string {
	if !o.confined.exposes(tools) || o.Sandbox == nil || o.Sandbox.Unsupervised() == "" {
		return nil
	}
	return []string{fmt.Sprintf("commands run outside a sandbox and without a supervisor (%s): what one of them starts in a session of its own may outlive its call",
		o.Sandbox.Unsupervised())}
}
