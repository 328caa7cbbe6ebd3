package pawl

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/tool"
)

// Approvals set which calls of an agent a person decides about, and how. The zero value
// asks about irreversible calls and about programs without a sandbox alone.
type Approvals struct {
	// Tools are the names of tools whose calls all need a person's approval,
	// through Ask. Without Ask the run parks; see [Run.Approve].
	Tools []string
	// Never are the names of tools that run without asking even if they start
	// programs without a sandbox or are declared to be irreversible, like
	// "tools.approvals: never" in an agent file. Protected paths still ask.
	Never []string
	// MaySend are the names of tools that are called without asking even when a run
	// has both untrusted text and private data. [tool.Tool.Labels] declares what a
	// tool's results contain and whether it can send.
	MaySend []string
	// Ask asks a person about a call and waits for the [Decision]. An error means
	// that no one can decide now, and parks the run; a panic rejects the call. Ask
	// may be called for several calls at once. Its context ends when the call is
	// decided elsewhere, when Within has passed, or when the run stops; its answer is
	// then ignored.
	Ask func(ctx context.Context, a Approval) (Decision, error)
	// Mode sets what happens to calls that need an approval. By default Ask decides,
	// and without Ask the run parks.
	Mode ApproveMode
	// Within is the time for a decision; 0 means no limit. OnTimeout sets what
	// happens when it has passed: by default the call is rejected. A later decision
	// is ignored, also for a parked run.
	Within    time.Duration
	OnTimeout OnTimeout
}

// Decision is the answer to an [Approval]. The zero value rejects the call.
type Decision struct {
	// Approve permits the call to run, once.
	Approve bool
	// Args, if set, are the arguments with which an approved call runs instead of the
	// model's. They are validated and judged like the model's; if they raise a new
	// question, Ask is called again. The result tells the model which arguments ran.
	Args json.RawMessage
	// Reason is recorded; for a rejected call the model receives it.
	Reason string
	// By names who decided; empty means the program's Ask.
	By string
}

// The values of [Approvals.Mode]; the default is the empty value.
const (
	// ApproveWait lets a call wait until a person decides through [Run.Approve] or
	// from another process, for an hour unless Within is set. Ask, if set,
	// is called as well.
	ApproveWait = agent.ApproveWait
	// ApprovePark parks the run without asking; the decision resumes it.
	ApprovePark = agent.ApprovePark
	// ApproveCallback is for programs in which only Ask decides: if Ask fails or is
	// missing, the call is rejected.
	ApproveCallback = agent.ApproveCallback
	// ApproveBypass approves every call, and records each approval.
	ApproveBypass = agent.ApproveBypass
)

// The values of [Approvals.OnTimeout].
const (
	// TimeoutReject tells the model that no one decided, and continues the run.
	TimeoutReject = agent.TimeoutReject
	// TimeoutStop ends the run.
	TimeoutStop = agent.TimeoutStop
)

// checkNames reports names of missing tools, and tools that both ask and never ask.
func (a Approvals) checkNames(set *tool.Set, report func(field, format string, args ...any)) {
	for _, named := range []struct {
		field string
		names []string
	}{{"Tools", a.Tools}, {"Never", a.Never}, {"MaySend", a.MaySend}} {
		for _, name := range named.names {
			if _, ok := set.Lookup(name); !ok {
				report("Approvals."+named.field, "there is no tool %q", name)
			}
		}
	}
	for _, name := range a.Never {
		if slices.Contains(a.Tools, name) {
			report("Approvals.Never", "Approvals.Tools has %q as well", name)
		}
	}
}

// answer calls the program's Ask. A panic counts as a rejection, because another call
// would only panic again.
func (a Approvals) answer(ctx context.Context, q event.Question) (answer event.Resolution, err error) {
	const program = "the program's Ask"
	defer func() {
		if v := recover(); v != nil {
			answer = event.Resolution{Kind: event.ApprovalRejected, Approver: program, Reason: fmt.Sprintf("%s panicked: %v", program, v)}
			err = nil
		}
	}()
	call, is := q.Asking.(Approval)
	if !is {
		return event.Resolution{}, fmt.Errorf("%s is asked about calls alone", program)
	}
	if q.ExpiresAt != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, *q.ExpiresAt)
		defer cancel()
	}
	d, err := a.Ask(ctx, call)
	if err != nil {
		return event.Resolution{}, err
	}
	answer = event.Resolution{Kind: event.ApprovalRejected, Approver: d.By, Reason: d.Reason}
	if answer.Approver == "" {
		answer.Approver = program
	}
	switch {
	case d.Approve && len(d.Args) > 0:
		answer.Kind, answer.Args = event.ApprovalEdited, d.Args
	case d.Approve:
		answer.Kind = event.ApprovalApproved
	}
	return answer, nil
}
