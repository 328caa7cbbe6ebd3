package event

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// Iteration ends one pass of a loop.
type Iteration struct {
	// Step is the step of the loop, in a workflow.
	Step string `json:"step,omitempty"`
	// Index counts from 0, Number from 1.
	Index         int `json:"index"`
	Number        int `json:"iteration"`
	MaxIterations int `json:"maxIterations,omitempty"`
	// Item is the element that the pass processed, if the loop has elements.
	Item   json.RawMessage `json:"item,omitempty"`
	Output string          `json:"output"`
	// Child is the run of the pass.
	Child string `json:"child,omitempty"`
	// Exit is why that run ended, and Tree identifies the content of the workspace
	// then: equal trees have equal texts. For a refinement loop both are present, Tree
	// if it could be computed.
	Exit Reason `json:"exit,omitempty"`
	Tree string `json:"tree,omitempty"`
}

func (Iteration) EventType() Type  { return "iteration" }
func (d Iteration) OfStep() string { return d.Step }

// repeats is for an iteration of a refinement loop, which is one step and repeats the
// step's text.
func (d Iteration) repeats() (step, text string) {
	if d.Exit == "" {
		return "", ""
	}
	return fmt.Sprintf("%s.%d", d.Step, d.Index), d.Output
}

// Progress is the log entry of an iteration for the next ones.
type Progress struct {
	// Step is as in [Iteration].
	Step     string `json:"step,omitempty"`
	Number   int    `json:"iteration"`
	Learning string `json:"learning"`
	// Patterns replaces the head of the log; empty leaves it unchanged.
	Patterns string `json:"patterns,omitempty"`
}

func (Progress) EventType() Type  { return "progress" }
func (d Progress) OfStep() string { return d.Step }

// ReviewRequested asks a person about an iteration.
type ReviewRequested struct {
	LoopID string `json:"loopId"`
	Step   string `json:"step,omitempty"`
	Number int    `json:"iteration"`
	Output string `json:"output"`
	// Digest is the digest of the question.
	Digest string `json:"digest"`
	Reason string `json:"reason,omitempty"`
	// Limit is the planned number of iterations, if the question is whether to run
	// more.
	Limit int `json:"limit,omitempty"`
	// ExpiresAt is when the question expires, nil for never, and OnExpiry what then
	// happens to the run.
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
	OnExpiry  OnExpiry   `json:"onExpiry,omitempty"`
}

func (ReviewRequested) EventType() Type  { return "review.requested" }
func (d ReviewRequested) OfStep() string { return d.Step }

// ReviewResolved is the person's answer.
type ReviewResolved struct {
	LoopID string       `json:"loopId"`
	Step   string       `json:"step,omitempty"`
	Kind   ApprovalKind `json:"kind"`
	// Digest is the digest of the question.
	Digest   string    `json:"digest"`
	Approver string    `json:"approver"`
	Reason   string    `json:"reason,omitempty"`
	At       time.Time `json:"at"`
	// Command is as in [PauseRequested]. It distinguishes equal decisions, of which
	// only the first counts.
	Command int64 `json:"command,omitempty"`
	// Principal is as in [ToolApprovalResolved].
	Principal Principal `json:"principal,omitzero"`
}

func (ReviewResolved) EventType() Type  { return "review.resolved" }
func (d ReviewResolved) OfStep() string { return d.Step }

// Question returns the question about the iteration.
func (d ReviewRequested) Question() Question {
	kind := QuestionReview
	if d.Limit > 0 {
		kind = QuestionLimit
	}
	return Question{
		ID: d.LoopID, Kind: kind, Step: d.Step, Digest: d.Digest, Reason: d.Reason, ExpiresAt: d.ExpiresAt, OnExpiry: d.OnExpiry,
		Subject: "iteration " + strconv.Itoa(d.Number), What: ReviewAsked{Iteration: d.Number, Output: d.Output},
		Takes: []ApprovalKind{ApprovalApproved, ApprovalRejected, ApprovalContinue}, Asking: d,
	}
}

func (d ReviewRequested) clone() Asking {
	d.ExpiresAt = clone(d.ExpiresAt)
	return d
}

// ReviewAsked is a question about an iteration.
type ReviewAsked struct {
	Iteration int    `json:"iteration"`
	Output    string `json:"output"`
}

// Resolved returns the decision about the iteration.
func (d ReviewRequested) Resolved(r Resolution) Resolving {
	return ReviewResolved{
		LoopID: r.ID, Step: d.Step, Kind: r.Kind, Digest: r.Digest, Approver: r.Approver, Reason: r.Reason, At: r.At,
		Command: r.Command, Principal: r.Principal,
	}
}

// Resolution returns the decision as that about a question.
func (d ReviewResolved) Resolution() Resolution {
	return Resolution{
		ID: d.LoopID, Of: QuestionReview, Kind: d.Kind, Digest: d.Digest, Approver: d.Approver, Reason: d.Reason, At: d.At,
		Command: d.Command, Principal: d.Principal,
	}
}

// JudgeVerdict is a judge's verdict on an iteration.
type JudgeVerdict struct {
	Step    string          `json:"step,omitempty"`
	Number  int             `json:"iteration"`
	Verdict Verdict         `json:"verdict"`
	Reason  string          `json:"reason,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	// Child is the judge's run.
	Child string `json:"child"`
	// Failed reports that the judge returned no verdict.
	Failed bool `json:"failed,omitempty"`
}

func (JudgeVerdict) EventType() Type  { return "judge.verdict" }
func (d JudgeVerdict) OfStep() string { return d.Step }

// Verdict is a judge's verdict.
type Verdict string

// The verdicts.
const (
	VerdictDone           Verdict = "done"
	VerdictNotDone        Verdict = "not_done"
	VerdictImpossible     Verdict = "impossible"
	VerdictBlockedOnHuman Verdict = "blocked_on_human"
)

// StepStarted starts an attempt of a step of a workflow. The first attempt of a step
// that is a run has none: see [ChildStarted.BeginsStep].
type StepStarted struct {
	// Step is the step's namespaced id.
	Step    string `json:"step"`
	Attempt int    `json:"attempt"`
	// Child is the run that performs the step, if there is one.
	Child string `json:"child,omitempty"`
	// Index is the element that the step processes, from 0, if there is one.
	Index *int `json:"index,omitempty"`
}

func (StepStarted) EventType() Type  { return "step.started" }
func (d StepStarted) OfStep() string { return d.Step }

// StepFinished ends an attempt of a step.
type StepFinished struct {
	Step    string          `json:"step"`
	Status  StepStatus      `json:"status"`
	Content string          `json:"content"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *Failure        `json:"error,omitempty"`
	Attempt int             `json:"attempt"`
	// Worktree is the step's worktree, if it has one.
	Worktree *Worktree `json:"worktree,omitempty"`
	// Behind reports that the content is omitted here: the step is an iteration of a
	// refinement loop, whose later event contains it.
	Behind bool `json:"-"`
}

// Worktree is a git worktree of a step, in its final state.
type Worktree struct {
	// Path is its directory, and Head its commit.
	Path string `json:"path"`
	Head string `json:"head"`
}

func (StepFinished) EventType() Type  { return "step.finished" }
func (d StepFinished) OfStep() string { return d.Step }

type stepFinished StepFinished

// storedStepFinished omits the content if it is stored elsewhere.
type storedStepFinished struct {
	stepFinished
	Content *string `json:"content,omitempty"`
}

func (d StepFinished) stored(bool) any {
	if d.Behind {
		return storedStepFinished{stepFinished: stepFinished(d)}
	}
	return d
}

// UnmarshalJSON decodes the stored form.
func (d *StepFinished) UnmarshalJSON(b []byte) error {
	var s storedStepFinished
	err := json.Unmarshal(b, &s)
	*d = StepFinished(s.stepFinished)
	if d.Behind = s.Content == nil; !d.Behind {
		d.Content = *s.Content
	}
	return err
}

func (d StepFinished) repeats() (step, text string) { return d.Step, d.Content }

func (d StepFinished) leaveOut(text string) (Data, bool) {
	if d.Content != text {
		return d, false
	}
	d.Behind, d.Content = true, ""
	return d, true
}

func (d StepFinished) leftOut() bool { return d.Behind }

func (d StepFinished) restore(text string) Data {
	d.Behind, d.Content = false, text
	return d
}

// StepStatus is how a step ended.
type StepStatus string

// The statuses of a step.
const (
	StepStatusCompleted StepStatus = "completed"
	StepStatusFailed    StepStatus = "failed"
	StepStatusSkipped   StepStatus = "skipped"
	StepStatusCancelled StepStatus = "cancelled"
)

// StepSkipped records why a step did not run.
type StepSkipped struct {
	Step   string `json:"step"`
	Reason string `json:"reason"`
}

func (StepSkipped) EventType() Type  { return "step.skipped" }
func (d StepSkipped) OfStep() string { return d.Step }

// MessageSent is a message between steps that was sent.
type MessageSent struct {
	// ID names the message among all of the run.
	ID string `json:"id"`
	// From and To are namespaced ids of steps, or [Coordinator]; To is empty for a
	// message to the people who watch the run.
	From string      `json:"from"`
	To   string      `json:"to"`
	Text string      `json:"text"`
	Kind MessageKind `json:"kind,omitempty"`
	// Taint is what the sender had read.
	Taint Taint `json:"taint,omitzero"`
}

func (MessageSent) EventType() Type  { return "message.sent" }
func (d MessageSent) OfStep() string { return d.From }

// Coordinator is the address of the agent that receives what a workflow's steps send.
const Coordinator = "coordinator"

// MessageKind is the purpose of a message of the coordinator; messages of steps have
// none.
type MessageKind string

// The kinds of messages.
const (
	MessageInfo          MessageKind = "info"
	MessageContextUpdate MessageKind = "context_update"
	// MessageCancel ends the step that receives it.
	MessageCancel MessageKind = "cancel"
	// MessageNarration informs the people who watch.
	MessageNarration MessageKind = "narration"
	// MessageFinal is the coordinator's final message.
	MessageFinal MessageKind = "final"
)

// MessageDelivered records that a message is in the conversation of a run, or was shown
// to the people who watch.
type MessageDelivered struct {
	ID string `json:"id"`
	// To is the step that received it, possibly of a later iteration than the one that
	// it was sent to.
	To string `json:"to"`
}

func (MessageDelivered) EventType() Type  { return "message.delivered" }
func (d MessageDelivered) OfStep() string { return d.To }

// MessageDropped records that a message has no receiver any more, and why.
type MessageDropped struct {
	ID     string     `json:"id"`
	To     string     `json:"to"`
	Reason DropReason `json:"reason"`
}

func (MessageDropped) EventType() Type { return "message.dropped" }

// DropReason is why a message has no receiver.
type DropReason string

// The reasons to drop a message.
const (
	DropWorkflowCancelled  DropReason = "workflow-cancelled"
	DropTargetTerminal     DropReason = "target-terminal"
	DropUnknownStep        DropReason = "unknown-step"
	DropMailboxClosed      DropReason = "mailbox-closed-by-finalize"
	DropMaxWakeCycles      DropReason = "max-wake-cycles"
	DropHoldTimeout        DropReason = "hold-timeout"
	DropMailboxFull        DropReason = "mailbox-full"
	DropNoTranscript       DropReason = "no-transcript"
	DropTranscriptTooLarge DropReason = "transcript-too-large"
	DropResumeShutdown     DropReason = "resume-shutdown"
	DropResolverError      DropReason = "resolver-error"
)

// LoopCompleted reports whether RondoFlow calls a loop with that outcome completed: a
// goal was met or the cap was reached. Any other loop has failed, including one that
// was stopped.
func LoopCompleted(o Outcome) bool {
	capped := o.Reason == ReasonMaxIterations && o.Status == StatusStopped || o.Reason == ReasonMaxCycles
	return o.Status == StatusCompleted || o.Reason == ReasonConditionMet || capped
}
