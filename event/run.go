package event

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl/llm"
)

// RunStarted is the first event of every run. It records everything that a
// later fold depends on, so that a journal means the same after an upgrade.
type RunStarted struct {
	// Vocabulary is the [Version] that wrote the journal.
	Vocabulary int `json:"vocabulary"`
	// Machine names the state machine and its version ("agent/1"), and
	// Projection the rules that turn history into a request ("1").
	Machine    string `json:"machine"`
	Projection string `json:"projection"`
	// Policy names the version of the policy: its rules, and how they are read.
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
	// Source is the file the run was started from, Spec its content, so that
	// another process can build the same agent again.
	Source string `json:"source,omitempty"`
	Spec   string `json:"spec,omitempty"`
	// Agents are the files of the agents that the run offers as tools, and of those
	// that these offer, as they were when it began.
	Agents []AgentFile `json:"agents,omitempty"`
	// Servers are the MCP servers whose tools the run may offer.
	Servers []ToolServer `json:"servers,omitempty"`
	// Options are the flags that changed the file's values, by name.
	Options map[string]string `json:"options,omitempty"`
	// Sandbox is the active tier ("none" when there is no OS boundary).
	Sandbox string `json:"sandbox,omitempty"`
	// HookFiles are the programs and scripts of the run's command hooks as they
	// were when it began; a hook of which one has changed fails. Absent where a
	// version wrote the event that pinned none.
	HookFiles []HookFile `json:"hookFiles,omitempty"`
	// Commands are the programs that the run offers as tools.
	Commands []CommandTool `json:"commands,omitempty"`
	// Confinement is what the sandbox holds, where there is one.
	Confinement *Confinement `json:"confinement,omitempty"`
	// Governance is [GovernanceExternal] of a run whose work another program does.
	Governance string   `json:"governance,omitempty"`
	Warnings   []string `json:"warnings,omitempty"`
	// Secrets are the names of the values that are redacted from everything the run
	// journals, so that a process that lacks one knows what it cannot redact. It is
	// absent if a version wrote the event that did not record it: there may be
	// some.
	Secrets []string `json:"secrets,omitzero"`
	// Fence is how untrusted results are marked for the model; absent where
	// the run has no tool that could give any.
	Fence *Fence `json:"fence,omitempty"`
	// Taint is what the run that started this one had read: it may be in the task.
	Taint Taint `json:"taint,omitzero"`
	// Root is the first of the runs above, Parent the one that started this one and
	// Depth how many there are on the way from the root, both counted: a root has its
	// own id and 1. Both are absent in what older versions wrote, where a parent is the
	// root.
	Root   string `json:"root,omitempty"`
	Parent string `json:"parent,omitempty"`
	// Step is the step of the parent's workflow that this run is, where it is one.
	Step  string `json:"step,omitempty"`
	Depth int    `json:"depth,omitempty"`
	// MaxDepth is the greatest depth of a descendant; absent for the default, see
	// [MaxDepth].
	MaxDepth int `json:"maxDepth,omitempty"`
	// From is the ended run that this one continues, with its history.
	From *ContinuedFrom `json:"from,omitempty"`
	// Replays is the run whose record answers the calls of this one, so that they
	// have no effect. Only the process that begins it has that record at hand.
	Replays string `json:"replays,omitempty"`
	// Principal is who started the run; a run that another one started has none.
	Principal Principal `json:"principal,omitzero"`
	// Trace is the trace that tells of the run, where there is one.
	Trace Trace `json:"trace,omitzero"`
	// Served is true where a server drives the run: the next server of the journal
	// continues what it leaves.
	Served bool `json:"served,omitempty"`
	// OnOwnerDisconnect is what becomes of the run when Principal has been gone from its
	// server for a while; absent where nothing does.
	OnOwnerDisconnect OwnerGone `json:"onOwnerDisconnect,omitempty"`
}

func (RunStarted) EventType() Type { return TypeRunStarted }

// OwnerGone is what becomes of a run whose owner is gone.
type OwnerGone string

// What may become of it. A run that is torn down ends as cancelled.
const (
	OwnerGonePark     OwnerGone = "park"
	OwnerGoneTeardown OwnerGone = "teardown"
)

// GovernanceExternal says that another program does the work of a run: one decision
// lets all of it run, and what it does is neither judged nor journalled here.
const GovernanceExternal = "external"

// MaxDepth is the default bound of the depth of a tree of runs; the root is
// counted.
const MaxDepth = 8

// AgentFile is an agent file with all that it takes from other files.
type AgentFile struct {
	Source string `json:"source"`
	Spec   string `json:"spec"`
}

// HookFile is what a file of a hook held when the run began.
type HookFile struct {
	// Hook is the hook's place in the agent file: hooks.before_tool[0].
	Hook string `json:"hook"`
	Path string `json:"path"`
	// Digest is "sha256:" and the hex digest; empty where there was no file.
	Digest string `json:"digest,omitempty"`
}

// Confinement is what the commands of a run may reach.
type Confinement struct {
	// OnDemand says that this is about the calls only that a rule puts into
	// the sandbox; the others run without one.
	OnDemand bool `json:"onDemand,omitempty"`
	// Network is none, allowlist or host; Hosts are the list.
	Network string   `json:"network"`
	Hosts   []string `json:"hosts,omitempty"`
	// Filesystem is repo-readonly, repo-readwrite or full.
	Filesystem string `json:"filesystem"`
	// MemoryBytes and Processes bound one command with all that it starts; a
	// negative number bounds nothing.
	MemoryBytes int64 `json:"memoryBytes,omitempty"`
	Processes   int   `json:"processes,omitempty"`
}

// ContinuedFrom carries an ended run's conversation into a new run.
type ContinuedFrom struct {
	Run string `json:"run"`
	Seq int64  `json:"seq"`
	// Root is the first of the runs that continue one another. Providers know
	// the conversation by it, so that it finds its cached prefix again.
	Root    string         `json:"root,omitempty"`
	History []*llm.Message `json:"history"`
	// Taint is what the ended run had taken in; it is in the conversation.
	Taint Taint `json:"taint,omitzero"`
	// Blobs are the contents that the ended run referred to. The new run may
	// read them and keeps them alive.
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

// RunParked says that the run stopped running without having ended.
type RunParked struct {
	Reason ParkReason `json:"reason"`
	Detail string     `json:"detail,omitempty"`
	// CallIDs are the calls that wait for a decision.
	CallIDs []string `json:"callIds,omitempty"`
	// Until is when resuming makes sense, if that is known.
	Until *time.Time `json:"until,omitempty"`
	// Limit is the limit to raise, if the run parked for that.
	Limit string `json:"limit,omitempty"`
	// ParentLimit is the limit of a run above this one, if that must be raised.
	// LimitRun is that run; absent if it is the one that started this one.
	ParentLimit string `json:"parentLimit,omitempty"`
	LimitRun    string `json:"limitRun,omitempty"`
	// AtLeast is the value below which raising that limit changes nothing, where
	// it is known.
	AtLeast float64 `json:"atLeast,omitempty"`
	// Served is true where the run was interrupted because its server stopped: the
	// next server of the journal continues it.
	Served bool `json:"served,omitempty"`
}

func (RunParked) EventType() Type { return TypeRunParked }

// Enough reports whether the run may continue if the limit for which it parked
// has this value; a negative value removes the limit.
func (p RunParked) Enough(value float64) bool { return value < 0 || value >= p.AtLeast }

// RunResumed says that a driver resumed the run. The outcome of calls that were
// in progress before it is unknown.
type RunResumed struct {
	// Recovered is true when the previous driver left without parking.
	Recovered bool   `json:"recovered,omitempty"`
	Owner     string `json:"owner,omitempty"`
	// Policy is how rules are read from here on, see policy.Version. Calls that
	// were approved under another reading ask again.
	Policy string `json:"policy,omitempty"`
	// Unread counts the commands that were sealed to the previous driver, so that
	// they cannot be read any more; they must be sent again.
	Unread int `json:"unread,omitempty"`
	// Secrets are the names of the run's secrets from here on, where they are
	// others than before.
	Secrets []string `json:"secrets,omitzero"`
	// Served is true where a server drives the run from here on.
	Served bool `json:"served,omitempty"`
}

func (RunResumed) EventType() Type { return TypeRunResumed }

// RunForked starts a run that shares another's journal up to Seq. The shared events
// stay as they were written: run.started has the id, root and depth of the run that
// wrote it. A fork is the root of a tree of its own.
type RunForked struct {
	From string `json:"from"`
	Seq  int64  `json:"seq"`
	// Requested is the number asked for, where Seq was rounded down.
	Requested int64  `json:"requested,omitempty"`
	Hash      string `json:"hash"`
	// Changed names what differs from here on: model, prompt, context_window.
	Changed []string `json:"changed,omitempty"`
	// Config is the machine's configuration from here on, and Options what
	// replaces options of run.started, where something was changed.
	Config  json.RawMessage   `json:"config,omitempty"`
	Options map[string]string `json:"options,omitempty"`
	// Results replace the results of calls in the run whose events are shared.
	Results []ForkedResult `json:"results,omitempty"`
	// Principal is who made the fork.
	Principal Principal `json:"principal,omitzero"`
}

func (RunForked) EventType() Type { return TypeRunForked }

// Forked is a run's first event as a fork has it. A fork of a replay has tools,
// and one of a run that another one started is a root, with no more below it than
// that run could have.
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
	// AtLeast is the value of that limit with which the call that was refused would
	// have been made, where that is known.
	AtLeast float64 `json:"atLeast,omitempty"`
	// LimitRun is the run above whose limit it is; absent if it is the run's own or,
	// by the kind parent, that of the run that started this one.
	LimitRun string   `json:"limitRun,omitempty"`
	Error    *Failure `json:"error,omitempty"`
	Detail   string   `json:"detail,omitempty"`
	// Step is the step of a workflow that the reason is about, and AtIteration the
	// iteration of a loop, from 1.
	Step        string `json:"step,omitempty"`
	AtIteration int    `json:"iteration,omitempty"`
	// CallID is the call whose result met the condition, or ended the run: the
	// evidence for what the run claims.
	CallID string `json:"callId,omitempty"`
	// Output is the run's result where it is not the last text (a tool that
	// ends the run).
	Output string `json:"output,omitempty"`
}

func (RunTerminatedBy) EventType() Type { return TypeRunTerminatedBy }

// RunCompleted is the one terminal event of a run that ended, on every path.
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

// UnmarshalJSON reads the event as it is stored, or as surfaces show it.
func (d *RunCompleted) UnmarshalJSON(b []byte) error {
	var s storedRunCompleted[untoldOutcome]
	err := json.Unmarshal(b, &s)
	d.Outcome = s.Outcome.whole()
	return err
}

// CancelRequested asks the run to end; whatever is in flight is stopped first.
type CancelRequested struct {
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Principal is who By names, with role and proof.
	Principal Principal `json:"principal,omitzero"`
}

func (CancelRequested) EventType() Type { return TypeCancelRequested }

// PauseRequested asks the run to park at the next boundary.
type PauseRequested struct {
	By string `json:"by,omitempty"`
	// Command is the inbox number of the command; absent if the input came from
	// elsewhere, or an older version wrote the event.
	Command int64 `json:"command,omitempty"`
	// Principal is as in [CancelRequested].
	Principal Principal `json:"principal,omitzero"`
}

func (PauseRequested) EventType() Type { return TypePauseRequested }

// InputReceived is a message that was sent while the run was running. It joins
// the conversation between two cycles.
type InputReceived struct {
	Text string `json:"text"`
	// Media are the images and files that go with the text, or stand alone.
	Media []llm.Media `json:"media,omitempty"`
	By    string      `json:"by,omitempty"`
	// Command is as in [PauseRequested].
	Command int64 `json:"command,omitempty"`
	// MessageID is the id of the message that it is, where another run of the tree
	// said it, and Taint what that run had read.
	MessageID string `json:"messageId,omitempty"`
	Taint     Taint  `json:"taint,omitzero"`
	// Principal is as in [CancelRequested].
	Principal Principal `json:"principal,omitzero"`
}

func (InputReceived) EventType() Type { return TypeInputReceived }

// Message is what joins the history, or nil when there is nothing in it.
func (d InputReceived) Message() *llm.Message {
	m := &llm.Message{Role: llm.RoleUser}
	if strings.TrimSpace(d.Text) != "" {
		m.Parts = append(m.Parts, llm.Text{Text: d.Text})
	}
	for _, f := range d.Media {
		m.Parts = append(m.Parts, f)
	}
	if len(m.Parts) == 0 {
		return nil
	}
	return m
}

// BudgetRaised replaces one limit of a running run.
type BudgetRaised struct {
	Setting string `json:"setting"`
	// Value is the new limit; -1 removes it.
	Value float64 `json:"value"`
	By    string  `json:"by,omitempty"`
	// Command is as in [PauseRequested].
	Command int64 `json:"command,omitempty"`
	// Principal is as in [CancelRequested].
	Principal Principal `json:"principal,omitzero"`
}

func (BudgetRaised) EventType() Type { return TypeBudgetRaised }

// Checkpoint marks a point that a fork or a reader may want to return to.
type Checkpoint struct {
	Label string `json:"label"`
	// Step is the step whose loop it is of, and Number the last iteration before it.
	Step   string `json:"step,omitempty"`
	Number int    `json:"iteration,omitempty"`
	// Child is the run that was asked, and Verdict what it said; absent if it gave none.
	Child   string  `json:"child,omitempty"`
	Verdict Verdict `json:"verdict,omitempty"`
	// Questions are what a goal asks itself there.
	Questions []CheckpointQuestion `json:"questions,omitempty"`
	// Plan is the goal's plan as it stands then.
	Plan json.RawMessage `json:"plan,omitempty"`
}

// CheckpointQuestion is a question of a checkpoint, and its answer.
type CheckpointQuestion struct {
	Question string `json:"question"`
	Answer   string `json:"answer"`
}

func (Checkpoint) EventType() Type { return "checkpoint" }

// OfStep is the step whose loop it is of.
func (d Checkpoint) OfStep() string { return d.Step }

// The two questions of a goal's checkpoint that a model answers.
const (
	AskObjective = "Is the objective still valid?"
	AskHuman     = "Is a person needed before the next step?"
)

// Answer is that to a question, empty for none.
func (d Checkpoint) Answer(question string) string {
	for _, q := range d.Questions {
		if q.Question == question {
			return q.Answer
		}
	}
	return ""
}
