package cli

import (
	"context"
	"os"

	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/host/sandbox"
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

// host is what this process offers to the runs that it drives, or would drive. It
// also says where a journal will be that is not there yet.
func (a *app) host(ctx context.Context) (launch.Host, *replays, error) {
	config, err := a.config()
	if err != nil {
		return launch.Host{}, nil, err
	}
	machine, err := a.sandbox(ctx)
	if err == nil {
		err = a.place(machine)
	}
	if err != nil {
		return launch.Host{}, nil, err
	}
	replayed := &replays{app: a}
	return launch.Host{Config: config, Sandbox: machine, Limiter: &a.limiter, Pages: &a.pages, Journal: a.journalPath, Replay: replayed.open}, replayed, nil
}
