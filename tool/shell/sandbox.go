package shell

import (
	"context"

	"github.com/pawlrun/pawl/internal/host/sandbox"
)

// The types of package sandbox that a program needs to confine its commands.
type (
	// A Shim starts this program again as a helper of a sandbox.
	Shim = sandbox.Shim
	// A Machine holds the ways in which this machine can confine commands.
	Machine = sandbox.Machine
	// A SandboxPolicy is what the commands of a sandbox may access.
	SandboxPolicy = sandbox.Policy
	// A Tier is a way to confine commands.
	Tier = sandbox.Tier
	// A Sandbox runs the commands of one workspace; see [Options.Sandbox].
	Sandbox = sandbox.Box
)

// SandboxMain must be the first call of a program whose commands run in a sandbox. In a
// process that was started as a helper of a sandbox it does not return.
func SandboxMain() Shim { return sandbox.Main() }

// Detect finds the tiers that work on this machine, the strongest first. It starts
// a process for each; [Machine.Open] then opens a sandbox.
func Detect(ctx context.Context, s Shim) *Machine { return sandbox.Detect(ctx, s) }
