package event

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl/llm"
)

// RunStarted is the first event of every run. It pins whatever a later fold or
// projection depends on: a journal means the same after an upgrade.
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
	// Options are the flags that changed the file's values, by name.
	Options map[string]string `json:"options,omitempty"`
	// Sandbox is the active tier ("none" when there is no OS boundary).
	Sandbox string `json:"sandbox,omitempty"`
	// HookFiles are the programs and scripts of the run's command hooks as they
	// were when it began; a hook of which one has changed fails. Absent where a
	// version wrote the event that pinned none.
	HookFiles []HookFile `json:"hookFiles,omitempty"`
	// Confinement is what the sandbox holds, where there is one.
	Confinement *Confinement `json:"confinement,omitempty"`
	Warnings    []string     `json:"warnings,omitempty"`
	// Secrets are the names of the values that are taken out of everything the
	// run journals, so that who lacks one knows what must not be told to it. It is
	// absent where a version wrote the event that did not say: there may be some.
	Secrets []string `json:"secrets,omitzero"`
	// Fence is how untrusted results are marked for the model; absent where
	// the run has no tool that could give any.
	Fence *Fence `json:"fence,omitempty"`
	// Taint is what the run that started this one had taken in: it may be in
	// the task.
	Taint Taint `json:"taint,omitzero"`
	// From is the ended run that this one continues, with its history.
	From *ContinuedFrom `json:"from,omitempty"`
	// Replays is the run whose record answers the calls of this one, so that they
	// have no effect. Only the process that begins it has that record at hand.
	Replays string `json:"replays,omitempty"`
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
}

// ParkReason is why a run waits for somebody.
type ParkReason string

// The park reasons (PRODUCT 4).
const (
	ParkApproval    ParkReason = "approval_required"
	ParkInput       ParkReason = "blocked_on_input"
	ParkInterrupted ParkReason = "interrupted"
	ParkPaused      ParkReason = "paused"
)

// RunParked says that the run stopped going without having ended.
type RunParked struct {
	Reason ParkReason `json:"reason"`
	Detail string     `json:"detail,omitempty"`
	// CallIDs are the calls that wait for a decision.
	CallIDs []string `json:"callIds,omitempty"`
	// Until is when going on makes sense, where that is known.
	Until *time.Time `json:"until,omitempty"`
	// Limit is the limit that somebody is asked to raise, where the run parked
	// for that.
	Limit string `json:"limit,omitempty"`
	// ParentLimit is the limit of the run that started this one, where that is to
	// be raised.
	ParentLimit string `json:"parentLimit,omitempty"`
	// AtLeast is the value below which raising that limit changes nothing, where
	// it is known.
	AtLeast float64 `json:"atLeast,omitempty"`
}

// Enough says that a limit which the run parked for may let it go on with a
// value; a negative one takes the limit away.
func (p RunParked) Enough(value float64) bool { return value < 0 || value >= p.AtLeast }

// RunResumed says that a driver took the run up again. What was in flight
// before it has an unknown outcome.
type RunResumed struct {
	// Recovered is true when the previous driver left without parking.
	Recovered bool   `json:"recovered,omitempty"`
	Owner     string `json:"owner,omitempty"`
	// Policy is how rules are read from here on, see policy.Version. What was
	// approved under another reading is asked about again.
	Policy string `json:"policy,omitempty"`
	// Unread is how many commands were sealed to the previous driver, so that
	// nobody can read them any more; they have to be sent again.
	Unread int `json:"unread,omitempty"`
	// Secrets are the names of the run's secrets from here on, where they are
	// others than before.
	Secrets []string `json:"secrets,omitzero"`
}

// RunForked starts a run that shares another's journal up to Seq.
type RunForked struct {
	From string `json:"from"`
	Seq  int64  `json:"seq"`
	// Requested is the number asked for, where Seq was rounded down.
	Requested int64  `json:"requested,omitempty"`
	Hash      string `json:"hash"`
	// Changed names what is different from here on: model, prompt, context_window.
	Changed []string `json:"changed,omitempty"`
	// Config is the machine's configuration from here on, and Options what
	// replaces options of run.started, where something was changed.
	Config  json.RawMessage   `json:"config,omitempty"`
	Options map[string]string `json:"options,omitempty"`
	// Results stand in the place of what calls gave in the run it shares.
	Results []ForkedResult `json:"results,omitempty"`
}

// Forked is a run's first event as a fork has it. A fork of a replay has tools.
func (s RunStarted) Forked(d RunForked) RunStarted {
	s.Replays = ""
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

// ForkedResult is what a fork says a call gave.
type ForkedResult struct {
	CallID string `json:"callId"`
	Output string `json:"output"`
}

// RunTerminatedBy names what ended the loop; run.completed follows.
type RunTerminatedBy struct {
	Reason Reason   `json:"reason"`
	Index  *int     `json:"index,omitempty"`
	Kind   string   `json:"kind,omitempty"`
	Limit  string   `json:"limit,omitempty"`
	Error  *Failure `json:"error,omitempty"`
	Detail string   `json:"detail,omitempty"`
	// CallID is the call whose result met the condition, or ended the run: the
	// evidence for what the run claims.
	CallID string `json:"callId,omitempty"`
	// Output is the run's result where it is not the last text (a tool that
	// ends the run).
	Output string `json:"output,omitempty"`
}

// RunCompleted is the one terminal event of a run that ended, on every path.
type RunCompleted struct {
	Outcome Outcome `json:"outcome"`
}

// CancelRequested asks the run to end; whatever is in flight is stopped first.
type CancelRequested struct {
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// PauseRequested asks the run to park at the next boundary.
type PauseRequested struct {
	By string `json:"by,omitempty"`
	// Command is the number that the inbox gave what somebody sent; absent where
	// it came from elsewhere, or an older version wrote the event.
	Command int64 `json:"command,omitempty"`
}

// InputReceived is a message that somebody added while the run went. It joins
// the history at the next boundary (FIELD F25).
type InputReceived struct {
	Text string `json:"text"`
	// Media are the images and files that go with the text, or stand alone.
	Media []llm.Media `json:"media,omitempty"`
	By    string      `json:"by,omitempty"`
	// Command is as in [PauseRequested].
	Command int64 `json:"command,omitempty"`
}

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
	// Value is the new limit; -1 takes it away.
	Value float64 `json:"value"`
	By    string  `json:"by,omitempty"`
	// Command is as in [PauseRequested].
	Command int64 `json:"command,omitempty"`
}

// Checkpoint marks a point that a fork or a reader may want to return to.
type Checkpoint struct {
	Label string `json:"label"`
}
