package event

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/pawlrun/pawl/llm"
)

// RunStarted is the first event of every run. It records everything that a later fold
// depends on, so that a journal means the same after an upgrade.
type RunStarted struct {
	// Vocabulary is the [Version] that wrote the journal.
	Vocabulary int `json:"vocabulary"`
	// Machine names the state machine and its version ("agent/1"), and Projection the
	// version of the rules that build a request from the conversation ("1").
	Machine    string `json:"machine"`
	Projection string `json:"projection"`
	// Policy is the version of the policy: its rules, and their interpretation.
	Policy string `json:"policy,omitempty"`
	// Kind and Name are the file's.
	Kind string `json:"kind"`
	Name string `json:"name,omitempty"`
	// Config is the machine's configuration: prompts, tools, limits.
	Config json.RawMessage `json:"config"`
	// Input is the task, as the first user message.
	Input *llm.Message `json:"input"`
	// Workspace is the directory that tools work in.
	Workspace string `json:"workspace,omitempty"`
	// Place is the machine that Workspace is on; absent if the journal belongs to one
	// machine.
	Place Place `json:"place,omitzero"`
	// Priority is the priority among queued runs, from 1, the first, to 5; absent for 3.
	Priority int `json:"priority,omitempty"`
	// Schedule is the schedule that started the run.
	Schedule string `json:"schedule,omitempty"`
	// Source is the file that the run was started from, Spec its content, so that
	// another process can build the same agent.
	Source string `json:"source,omitempty"`
	Spec   string `json:"spec,omitempty"`
	// Agents are the files of the agents that the run offers as tools, and of those
	// that these offer, as they were when the run began.
	Agents []AgentFile `json:"agents,omitempty"`
	// Servers are the MCP servers whose tools the run may offer.
	Servers []ToolServer `json:"servers,omitempty"`
	// Options are the flags that changed the file's values, by name; var.NAME is the
	// value of a variable.
	Options map[string]string `json:"options,omitempty"`
	// Sandbox is the active tier ("none" without a sandbox).
	Sandbox string `json:"sandbox,omitempty"`
	// HookFiles are the programs and scripts of the run's command hooks as they were
	// when the run began; a hook with a changed file fails. It is absent in events of
	// versions that did not record it.
	HookFiles []HookFile `json:"hookFiles,omitempty"`
	// Commands are the programs that the run offers as tools.
	Commands []CommandTool `json:"commands,omitempty"`
	// Instructions are the files whose texts the system text contains, besides that of
	// the prompt.
	Instructions []TextFile `json:"instructions,omitempty"`
	// Skills are the skills that the system text offers.
	Skills []SkillFile `json:"skills,omitempty"`
	// Confinement is what the sandbox enforces, if there is one.
	Confinement *Confinement `json:"confinement,omitempty"`
	// Governance is [GovernanceExternal] if another program does the run's work.
	Governance string   `json:"governance,omitempty"`
	Warnings   []string `json:"warnings,omitempty"`
	// Secrets are the names of the values that are redacted from everything the run
	// journals, so that a process that lacks one knows what it cannot redact. It is
	// absent in events of versions that did not record it: there may be some.
	Secrets []string `json:"secrets,omitzero"`
	// Fence marks untrusted results for the model; absent if the run has no tool that
	// could return any.
	Fence *Fence `json:"fence,omitempty"`
	// Taint is what the parent had read, because the task may contain it.
	Taint Taint `json:"taint,omitzero"`
	// Root is the root of the tree, Parent the run that started this one, and Depth the
	// number of runs from the root to this one, including both: for a root, its own id
	// and 1. In events of older versions Root and Depth are absent, and a parent is the
	// root.
	Root   string `json:"root,omitempty"`
	Parent string `json:"parent,omitempty"`
	// Step is the step of the parent's workflow that this run performs, if it performs
	// one.
	Step  string `json:"step,omitempty"`
	Depth int    `json:"depth,omitempty"`
	// MaxDepth is the maximum depth of a descendant; absent for the default, see
	// [MaxDepth].
	MaxDepth int `json:"maxDepth,omitempty"`
	// From is the ended run that this one continues, with its conversation.
	From *ContinuedFrom `json:"from,omitempty"`
	// Replays is the run whose record answers the calls of this one, so that they have
	// no effect. Only the process that starts the run has that record.
	Replays string `json:"replays,omitempty"`
	// Principal is the principal that started the run; a child has none.
	Principal Principal `json:"principal,omitzero"`
	// Trace is the trace of the run, if there is one.
	Trace Trace `json:"trace,omitzero"`
	// Served is true if a server drives the run: the next server of the journal resumes
	// it.
	Served bool `json:"served,omitempty"`
	// OnOwnerDisconnect is what happens to the run when Principal has been disconnected
	// from its server for a while; absent for nothing.
	OnOwnerDisconnect OwnerGone `json:"onOwnerDisconnect,omitempty"`
}

func (RunStarted) EventType() Type { return TypeRunStarted }

// OwnerGone is what happens to a run whose owner is disconnected.
type OwnerGone string

// The values of OwnerGone. A run that is torn down ends as cancelled.
const (
	OwnerGonePark     OwnerGone = "park"
	OwnerGoneTeardown OwnerGone = "teardown"
)

// GovernanceExternal means that another program does the work of a run: one decision
// allows all of it, and its actions are neither judged nor journalled.
const GovernanceExternal = "external"

// MaxDepth is the default maximum depth of a tree of runs, including the root.
const MaxDepth = 8

// AgentFile is an agent file with everything that it includes from other files.
type AgentFile struct {
	Source string `json:"source"`
	Spec   string `json:"spec"`
}

// HookFile is the content of a hook's file when the run began.
type HookFile struct {
	// Hook is the hook's place in the agent file: hooks.before_tool[0].
	Hook string `json:"hook"`
	Path string `json:"path"`
	// Digest is "sha256:" and the hex digest; empty if there was no file.
	Digest string `json:"digest,omitempty"`
}

// TextFile is a file with instructions of the owner.
type TextFile struct {
	// Path is relative to the agent file, or to the top of the working tree.
	Path string `json:"path"`
	// Digest is "sha256:" and the hex digest.
	Digest string `json:"digest"`
}

// SkillFile is the file of a skill, which the model reads with skill.read.
type SkillFile struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Path        string `json:"path"`
	// Digest is "sha256:" and the hex digest.
	Digest string `json:"digest"`
}

// Confinement is what the commands of a run may access.
type Confinement struct {
	// OnDemand reports that it applies only to calls that a rule puts into the sandbox;
	// the others run without one.
	OnDemand bool `json:"onDemand,omitempty"`
	// Network is none, allowlist or host; Hosts is the allowlist.
	Network string   `json:"network"`
	Hosts   []string `json:"hosts,omitempty"`
	// Filesystem is repo-readonly, repo-readwrite or full.
	Filesystem string `json:"filesystem"`
	// MemoryBytes and Processes bound one command with all that it starts; a negative
	// number means no limit.
	MemoryBytes int64 `json:"memoryBytes,omitempty"`
	Processes   int   `json:"processes,omitempty"`
}

// ContinuedFrom carries an ended run's conversation into a new run.
type ContinuedFrom struct {
	Run string `json:"run"`
	Seq int64  `json:"seq"`
	// Root is the first run of the chain of continued runs. It is the conversation's id
	// for providers, so that the cached prefix is found again.
	Root    string         `json:"root,omitempty"`
	History []*llm.Message `json:"history"`
	// Taint is what the ended run had read, because the conversation contains it.
	Taint Taint `json:"taint,omitzero"`
	// Blobs are the contents that the ended run referred to. The new run may read them
	// and keeps them from being deleted.
	Blobs []BlobRef `json:"blobs,omitempty"`
	// Files are the files whose content the ended run knew, sorted by path.
	Files []FileSeen `json:"files,omitempty"`
}

// ParkReason is why a run is parked.
type ParkReason string

// The park reasons.
const (
	ParkApproval    ParkReason = "approval_required"
	ParkInput       ParkReason = "blocked_on_input"
	ParkInterrupted ParkReason = "interrupted"
	ParkPaused      ParkReason = "paused"
)

// RunParked records that the run stopped running without having ended.
type RunParked struct {
	Reason ParkReason `json:"reason"`
	Detail string     `json:"detail,omitempty"`
	// CallIDs are the calls that wait for a decision.
	CallIDs []string `json:"callIds,omitempty"`
	// Until is the earliest useful time to resume, if known.
	Until *time.Time `json:"until,omitempty"`
	// Limit is the limit to raise, if the run parked for that.
	Limit string `json:"limit,omitempty"`
	// ParentLimit is the limit of an ancestor that must be raised, if any. LimitRun is
	// that ancestor; absent if it is the parent.
	ParentLimit string `json:"parentLimit,omitempty"`
	LimitRun    string `json:"limitRun,omitempty"`
	// AtLeast is the lowest value of that limit that would help, if known.
	AtLeast float64 `json:"atLeast,omitempty"`
	// Served is true if the run was interrupted because its server stopped: the next
	// server of the journal resumes it.
	Served bool `json:"served,omitempty"`
}

func (RunParked) EventType() Type { return TypeRunParked }

// Enough reports whether the run may continue if the limit for which it parked
// has this value; a negative value removes the limit.
func (p RunParked) Enough(value float64) bool { return value < 0 || value >= p.AtLeast }

// RunResumed records that a driver resumed the run. The outcome of calls that were in
// progress is unknown.
type RunResumed struct {
	// Recovered is true if the previous driver ended without parking.
	Recovered bool   `json:"recovered,omitempty"`
	Owner     string `json:"owner,omitempty"`
	// Policy is the interpretation of rules from here on, see policy.Version. Calls
	// that were approved under another one ask again.
	Policy string `json:"policy,omitempty"`
	// Unread counts the commands that were sealed for the previous driver, so that they
	// cannot be read any more; they must be sent again.
	Unread int `json:"unread,omitempty"`
	// Secrets are the names of the run's secrets from here on, if they have changed.
	Secrets []string `json:"secrets,omitzero"`
	// Served is true if a server drives the run from here on.
	Served bool `json:"served,omitempty"`
}

func (RunResumed) EventType() Type { return TypeRunResumed }

// RunForked starts a run that shares another's journal up to Seq. The shared events are
// unchanged: run.started contains the id, root and depth of the original run. A fork is
// the root of a separate tree.
type RunForked struct {
	From string `json:"from"`
	Seq  int64  `json:"seq"`
	// Requested is the requested number, if Seq was rounded down.
	Requested int64  `json:"requested,omitempty"`
	Hash      string `json:"hash"`
	// Changed names what differs from here on: model, prompt, context_window.
	Changed []string `json:"changed,omitempty"`
	// Config is the machine's configuration from here on, and Options replaces options
	// of run.started, if something was changed.
	Config  json.RawMessage   `json:"config,omitempty"`
	Options map[string]string `json:"options,omitempty"`
	// Results replace the results of calls in the run whose events are shared.
	Results []ForkedResult `json:"results,omitempty"`
	// Principal is the principal that created the fork.
	Principal Principal `json:"principal,omitzero"`
}

func (RunForked) EventType() Type { return TypeRunForked }

// Forked returns a run's first event as a fork has it. A fork of a replay has tools,
// and a fork of a child is a root whose descendants may be as deep as those of the
// child.
func (s RunStarted) Forked(d RunForked) RunStarted {
	if s.Depth > 1 {
		s.MaxDepth = cmp.Or(s.MaxDepth, MaxDepth) - s.Depth + 1
	}
	s.Replays, s.Root, s.Parent, s.Step, s.Depth = "", "", "", "", 0
	s.Principal, s.Trace = d.Principal, Trace{}
	if len(d.Config) > 0 {
		s.Config = slices.Clone(d.Config)
	}
	if len(d.Options) > 0 {
		options := map[string]string{}
		maps.Copy(options, s.Options)
		maps.Copy(options, d.Options)
		s.Options = options
	}
	return s
}

// RunPlaced records where a run works from then on. The worker that drives the run first
// decides that, if the run's first event has no directory.
type RunPlaced struct {
	// Host is the machine; absent if the journal belongs to one machine.
	Host string `json:"host,omitempty"`
	// Workspace is the directory there that tools work in, a clone for a run whose place
	// is a repository.
	Workspace string `json:"workspace,omitempty"`
}

func (RunPlaced) EventType() Type { return TypeRunPlaced }

// Placed returns a run's first event with the run's place.
func (s RunStarted) Placed(d RunPlaced) RunStarted {
	s.Place.Host, s.Workspace = d.Host, d.Workspace
	return s
}

// ForkedResult replaces the result of a call in a fork.
type ForkedResult struct {
	CallID string `json:"callId"`
	Output string `json:"output"`
}

// RunTerminatedBy names what ended the loop; run.completed follows.
type RunTerminatedBy struct {
	Reason Reason `json:"reason"`
	Index  *int   `json:"index,omitempty"`
	Kind   string `json:"kind,omitempty"`
	Limit  string `json:"limit,omitempty"`
	// AtLeast is the lowest value of that limit with which the refused call would have
	// been made, if known.
	AtLeast float64 `json:"atLeast,omitempty"`
	// LimitRun is the ancestor that has the limit; absent if it is the run itself or,
	// with the kind parent, the parent.
	LimitRun string   `json:"limitRun,omitempty"`
	Error    *Failure `json:"error,omitempty"`
	Detail   string   `json:"detail,omitempty"`
	// Step is the step of a workflow that the reason concerns, and AtIteration the
	// iteration of a loop, from 1.
	Step        string `json:"step,omitempty"`
	AtIteration int    `json:"iteration,omitempty"`
	// CallID is the call whose result met the condition or ended the run; it is the
	// evidence.
	CallID string `json:"callId,omitempty"`
	// Output is the run's result if it is not the last text, for example from a tool
	// that ends the run.
	Output string `json:"output,omitempty"`
}

func (RunTerminatedBy) EventType() Type { return TypeRunTerminatedBy }

// RunCompleted is the one terminal event of a run.
type RunCompleted struct {
	Outcome Outcome `json:"outcome"`
}

func (RunCompleted) EventType() Type { return TypeRunCompleted }

type storedRunCompleted[O any] struct {
	Outcome O `json:"outcome"`
}

func (d RunCompleted) stored(shown bool) any {
	if o, ok := d.Outcome.abridge(); ok && !shown {
		return storedRunCompleted[abridgedOutcome]{Outcome: o}
	}
	return d
}

// UnmarshalJSON decodes the stored form, and the form that surfaces show.
func (d *RunCompleted) UnmarshalJSON(b []byte) error {
	var s storedRunCompleted[untoldOutcome]
	err := json.Unmarshal(b, &s)
	d.Outcome = s.Outcome.whole()
	return err
}
