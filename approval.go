package pawl

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/tool"
)

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

// The values of [Agent.ApproveMode]; the default is the empty value.
const (
	// ApproveWait lets a call wait until a person decides through [Run.Approve] or
	// from another process, for an hour unless ApproveWithin is set. Ask, if set,
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

// The values of [Agent.OnTimeout].
const (
	// TimeoutReject tells the model that no one decided, and continues the run.
	TimeoutReject = agent.TimeoutReject
	// TimeoutStop ends the run.
	TimeoutStop = agent.TimeoutStop
)

// checkNames reports names of missing tools, and tools in both Approvals and NeverAsk.
func (a Agent) checkNames(set *tool.Set, report func(field, format string, args ...any)) {
	for _, named := range []struct {
		field string
		names []string
	}{{"Approvals", a.Approvals}, {"NeverAsk", a.NeverAsk}, {"MaySend", a.MaySend}} {
		for _, name := range named.names {
			if _, ok := set.Lookup(name); !ok {
				report(named.field, "there is no tool %q", name)
			}
		}
	}
	for _, name := range a.NeverAsk {
		if slices.Contains(a.Approvals, name) {
			report("NeverAsk", "Approvals has %q as well", name)
		}
	}
}

// asker calls the program's Ask. A panic counts as a rejection, because another call
// would only panic again.
func (a Agent) asker(ctx context.Context, q event.Question) (answer event.Resolution, err error) {
	const program = "the program's Ask"
	defer func() {
		if v := recover(); v != nil {
			answer = event.Resolution{Kind: event.ApprovalRejected, Approver: program, Reason: fmt.Sprintf("%s panicked: %v", program, v)}
			err = nil
		}
	}()
	call, is := q.Asked.(Approval)
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
