package pawl

import (
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/egress"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/tool"
)

type (
	// A Rule concerns the calls of a tool.
	Rule = policy.Rule
	// A Pattern names files of the workspace, such as "deploy/**".
	Pattern = policy.Pattern
	// A Mode sets what happens to calls that no rule decides.
	Mode = policy.Mode
	// A Filesystem bounds what calls may do to files.
	Filesystem = policy.Filesystem
	// Git sets what happens to commands that write the repository of the workspace.
	Git = policy.Git
	// RuleOfTwo sets whether a call that sends asks once the run has read untrusted
	// text and private data.
	RuleOfTwo = policy.RuleOfTwo
	// Network bounds the hosts that calls may reach.
	Network = egress.Rules
)

// The values of [Permissions], which are the same as in tools.permissions of an agent
// file.
const (
	ModeDefault        = policy.ModeDefault
	ModeAcceptEdits    = policy.ModeAcceptEdits
	ModePlan           = policy.ModePlan
	ModeBypass         = policy.ModeBypass
	FilesystemNone     = policy.FilesystemNone
	FilesystemReadOnly = policy.FilesystemReadOnly
	GitAsk             = policy.GitAsk
	GitAllow           = policy.GitAllow
	GitDeny            = policy.GitDeny
	RuleOfTwoAsk       = policy.RuleOfTwoAsk
	RuleOfTwoOff       = policy.RuleOfTwoOff
	NetworkNone        = egress.NetworkNone
	NetworkAllowlist   = egress.NetworkAllowlist
	NetworkHost        = egress.NetworkHost
)

// Permissions decide which calls of the [Agent.Tools] are allowed, asked about or
// denied, in addition to the [Agent.Approvals]. The zero value adds nothing.
type Permissions struct {
	// Rules concern single tools, paths, hosts or commands. If several match a call,
	// the strictest decides.
	Rules []Rule
	// Mode sets what happens to calls that no rule decides.
	Mode Mode
	// ProtectedPaths need an approval to be written. AskToRead are the tools that ask
	// even before they read one.
	ProtectedPaths []Pattern
	AskToRead      []string
	// Filesystem bounds what a call may do to files, Network the hosts that it may
	// reach. Both apply to the known facts of calls; the sandbox enforces them for
	// programs that a tool starts.
	Filesystem Filesystem
	Network    Network
	// Git sets what happens to commands that write the git repository of the workspace;
	// empty means [GitAsk]. With [GitAllow], name the repository in the Open field of
	// the sandbox's policy.
	Git Git
	// RuleOfTwo sets whether a call that sends asks once the run has read untrusted
	// text and private data; by default it does. MaySend of the agent lists exceptions.
	RuleOfTwo RuleOfTwo
}

// rules returns the rules that judge the agent's calls.
func (a Agent) rules() policy.Rules {
	r := a.Permissions.rules()
	r.Gates, r.Open, r.MaySend, r.HighRisk = a.Approvals.Tools, a.Approvals.Never, a.Approvals.MaySend, a.highRisk()
	return r
}

func (p Permissions) rules() policy.Rules {
	return policy.Rules{
		Declared: true, Rules: p.Rules, Mode: p.Mode, Protected: p.ProtectedPaths, GateProtected: p.AskToRead,
		Filesystem: p.Filesystem, Network: p.Network, RuleOfTwo: p.RuleOfTwo, Git: p.Git,
	}
}

// check reports the errors in the permissions. set is nil if the tools are invalid.
func (p Permissions) check(set *tool.Set, report func(field, format string, args ...any)) {
	at := func(field string) policy.Report {
		return func(expected, format string, args ...any) {
			report("Permissions."+field, "%s (expected %s)", fmt.Sprintf(format, args...), expected)
		}
	}
	for i, r := range p.Rules {
		field := fmt.Sprintf("Rules[%d].", i)
		r.Check(func(key string) policy.Report { return at(field + strings.ToUpper(key[:1]) + key[1:]) })
		if checkChoice(report, "Permissions."+field+"Decision", r.Decision, event.DecisionAllow, event.DecisionAsk, event.DecisionDeny, event.DecisionSandbox); r.Decision == "" {
			report("Permissions."+field+"Decision", "is missing")
		}
		if _, there := set.Lookup(r.Tool); set != nil && !there && !strings.Contains(r.Tool, "*") {
			report("Permissions."+field+"Tool", "there is no tool %q", r.Tool)
		}
	}
	for i, pattern := range p.ProtectedPaths {
		pattern.Check(at(fmt.Sprintf("ProtectedPaths[%d]", i)))
	}
	for _, name := range p.AskToRead {
		if _, there := set.Lookup(name); set != nil && !there {
			report("Permissions.AskToRead", "there is no tool %q", name)
		}
	}
	checkChoice(report, "Permissions.Mode", p.Mode, policy.ModeDefault, policy.ModeAcceptEdits, policy.ModePlan, policy.ModeBypass)
	checkChoice(report, "Permissions.Filesystem", p.Filesystem, policy.FilesystemNone, policy.FilesystemReadOnly)
	checkChoice(report, "Permissions.Git", p.Git, policy.GitAsk, policy.GitAllow, policy.GitDeny)
	checkChoice(report, "Permissions.RuleOfTwo", p.RuleOfTwo, policy.RuleOfTwoAsk, policy.RuleOfTwoOff)
	checkChoice(report, "Permissions.Network.Network", p.Network.Network, egress.NetworkNone, egress.NetworkAllowlist, egress.NetworkHost)
}
