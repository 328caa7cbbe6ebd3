package main

import (
	"context"
	"os"

	"github.com/pawlrun/pawl/sandbox"
)

// sandboxVariable names the strongest tier to use, for an owner whose machine
// has one that does not do.
const sandboxVariable = "PAWL_SANDBOX"

// sandbox looks for the strongest sandbox of this machine.
func (a *app) sandbox(ctx context.Context) (*sandbox.Machine, error) {
	most := sandbox.Tier(os.Getenv(sandboxVariable))
	if most != "" && !most.AtLeast(sandbox.None) {
		return nil, usagef("$%s is %q; it can be bubblewrap, namespaces, landlock or none", sandboxVariable, most)
	}
	return sandbox.Strongest(ctx, a.shim, most), nil
}
