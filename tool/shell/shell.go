// Package shell provides shell.exec, which runs one command in the workspace: in a
// separate session and process group, with an environment from an allow-list, a
// timeout, and bounded output.
//
// Nothing that a command starts in its group outlives the call, nor this process if
// that is killed. A process that leaves the group (setsid) is killed with it in a box
// ([Options.Sandbox], [Options.Bare]); without a box it outlives the call.
package shell

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/egress"
	"github.com/pawlrun/pawl/internal/host/resolve"
	"github.com/pawlrun/pawl/internal/host/sandbox"
	"github.com/pawlrun/pawl/tool"
)

// Options configure [New].
type Options struct {
	// Dir is the working directory; empty means this process's. Commands run in the
	// directory that exists when the tool is made, not in one that replaces it.
	Dir string
	// Env is the exact environment of commands; nil means [Environment] of this
	// process's.
	Env []string
	// Timeout bounds a command that sets no timeout; 0 means [tool.DefaultTimeout].
	Timeout time.Duration
	// MaxTimeout bounds the timeout that a call may set; 0 means an hour.
	MaxTimeout time.Duration
	// Sandbox is the box that commands run in. If it is nil, they run with the rights
	// of this process, and an agent asks first (the rule "no sandbox") unless
	// Approvals.Never of the agent names the tool. The tool does not close it.
	Sandbox *sandbox.Box
	// Bare is the box of commands that run outside the sandbox: it confines nothing but
	// ends all processes that they start. Without it, a process that leaves its group
	// outlives its call.
	Bare *sandbox.Box
	// OnDemand uses the sandbox only for calls for which a rule requires it.
	OnDemand bool
	// Inside reports that every command runs in a sandbox, and Offline that the sandbox
	// has no network, so that no command receives or sends anything. Both follow from
	// Sandbox if it is set.
	Inside, Offline bool
	// Full reports that the sandbox does not protect protected paths and paths outside
	// the working directory, Scratch that commands have separate directories for
	// temporary files. Both follow from Sandbox if it is set.
	Full, Scratch bool
	// Protected says which paths of the working directory are protected, so that a
	// command is also judged by the other, protected names of a file (hard links); nil
	// protects what Sandbox does.
	Protected sandbox.Protection
	// Git is the value of tools.permissions.git, for error messages.
	Git string
	// GateReads reports that a question is also required before a command reads a
	// protected path.
	GateReads bool

	// opened identifies the working directory at the start, nil if it did not exist.
	opened os.FileInfo
}

func (o Options) withDefaults() Options {
	if o.Env == nil {
		o.Env = Environment(os.Environ())
	}
	if dir, err := filepath.Abs(o.Dir); err == nil {
		o.Dir = dir
	}
	if opened, err := os.Stat(o.Dir); err == nil {
		o.opened = opened
	}
	if o.Sandbox != nil {
		o.Inside = !o.OnDemand
		p := o.Sandbox.Policy()
		o.Full = p.Protected == nil || p.Filesystem == sandbox.FilesystemFull
		o.Scratch = o.Inside && sandbox.Scratch(o.Sandbox.Tier(), p.Filesystem)
		o.Offline = o.Inside && p.Egress.Network == egress.NetworkNone
		if o.Protected == nil {
			o.Protected = p.Protected
		}
	}
	o.Timeout = cmp.Or(o.Timeout, tool.DefaultTimeout)
	o.MaxTimeout = max(o.Timeout, cmp.Or(o.MaxTimeout, time.Hour))
	return o
}

type args struct {
	Command        string  `json:"command" jsonschema:"the command line, run by /bin/sh -c in the workspace"`
	TimeoutSeconds float64 `json:"timeout_seconds,omitempty" jsonschema:"stop the command after this many seconds"`
}

// New returns the shell.exec tool. The effect of a command is unknown, so it is at most
// once, runs alone, and touches everything.
func New(o Options) tool.Tool {
	o = o.withDefaults()
	about := fmt.Sprintf("Run a shell command in the workspace and return its exit code and output. It has no input and no terminal. "+
		"It is stopped after %g seconds unless timeout_seconds says otherwise (at most %g), and so is what it leaves in the background.",
		o.Timeout.Seconds(), o.MaxTimeout.Seconds())
	t := tool.NewWithCall("shell.exec", about, o.run)
	t.Aliases = []string{"bash", "execute_command"}
	t.Effect, t.Sandboxed = event.EffectAtMostOnce, true
	t.Access = func(json.RawMessage) []event.Access { return []event.Access{{Key: "*", Write: true}} }
	t.Timeout = o.Timeout
	t.TimeoutFor = func(raw json.RawMessage) time.Duration { return o.timeout(argsOf(raw).TimeoutSeconds) }
	t.LabelsFor = o.labels
	run := t.Run
	t.Check = func(raw json.RawMessage) error { return o.check(argsOf(raw)) }
	t.Facts = func(raw json.RawMessage) event.Facts { return o.facts(argsOf(raw).Command) }
	t.Run = func(ctx context.Context, c tool.Call) (tool.Result, error) {
		if c.Facts != nil {
			if err := asJudged(c.Facts, t.Facts(c.Args)); err != nil {
				return tool.Result{}, err
			}
		}
		return run(ctx, c)
	}
	t.Writing = o.writing
	t.Describe = func(raw json.RawMessage) string { return "run " + argsOf(raw).Command }
	return t
}

// facts returns the facts by which the command is judged.
func (o Options) facts(command string) event.Facts {
	facts := event.Facts{Risk: event.RiskUnknown, Unclear: []string{"the workspace cannot be resolved"}}
	if ws, err := resolve.At(o.Dir); err == nil {
		ws = ws.Searching(o.variable("PATH"))
		if o.Inside {
			ws = ws.Confined(o.variable("HOME"), o.variable("XDG_CONFIG_HOME"))
		}
		facts = o.withScratch(o.withProtection(o.withOtherNames(ws.Shell(command))))
	}
	facts.Unsandboxed = !o.Inside
	facts.Sandboxed = o.Inside && !o.Full
	return facts
}

func argsOf(raw json.RawMessage) args {
	var a args
	_ = json.Unmarshal(raw, &a)
	return a
}

// timeout returns the timeout that a call sets, within the cap; 0 if it sets none.
func (o Options) timeout(seconds float64) time.Duration {
	switch {
	case !(seconds > 0):
		return 0
	case seconds >= o.MaxTimeout.Seconds():
		return o.MaxTimeout
	}
	return max(1, time.Duration(seconds*float64(time.Second)))
}

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
