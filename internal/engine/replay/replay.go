// Package replay repeats the loop of a run without effects, using the recorded answers
// of its models, tools and people. Use it to compare the loop with the journal or to
// try other settings.
package replay

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/llm"
)

// maxDivergences limits the divergences in a report. The first one matters most.
const maxDivergences = 20

// Divergence is an event at which the loop would act differently today.
type Divergence struct {
	Seq  int64      `json:"seq"`
	Type event.Type `json:"type"`
	// What describes the difference; Recorded and Now are the two values.
	What     string `json:"what"`
	Recorded string `json:"recorded,omitempty"`
	Now      string `json:"now,omitempty"`
}

// String returns the divergence in one line.
func (d Divergence) String() string {
	text := fmt.Sprintf("event %d (%s): %s", d.Seq, d.Type, d.What)
	if d.Recorded != "" || d.Now != "" {
		text += fmt.Sprintf(": recorded %s, now %s", cmp.Or(d.Recorded, "nothing"), cmp.Or(d.Now, "nothing"))
	}
	return text
}

// Replayed is the result of a replay.
type Replayed struct {
	Run    string `json:"run"`
	Events int64  `json:"events"`
	// Decisions counts the events that the machine decided again.
	Decisions int `json:"decisions"`
	// Requests counts the model requests made again, and Compared those compared byte
	// by byte. A scripted model has no bytes to compare.
	Requests    int          `json:"requests"`
	Compared    int          `json:"compared"`
	Divergences []Divergence `json:"divergences"`
}

// Run repeats a run's loop without effects, using the recorded answers of its models,
// tools and people. It compares each decision of the machine with the journal, and each
// request as encoded by the wire that open returns. If open fails for a model, Run does
// not compare that model's requests.
func Run(ctx context.Context, past drive.Past, run string, open func(target string) (llm.Model, string, error)) (Replayed, error) {
	r := replayer{open: open, memo: new(llm.Memo), found: Replayed{Run: run, Divergences: []Divergence{}}}
	if err := past.Refold(ctx, run, r.step); err != nil {
		return r.found, fmt.Errorf("replay: replay run %s: %w", run, err)
	}
	return r.found, nil
}

type replayer struct {
	open  func(target string) (llm.Model, string, error)
	memo  *llm.Memo
	found Replayed
	// broken reports that the engine ended the run because of an internal error.
	broken bool
	// cancelled reports that the run was cancelled, so hooks may finish when they are
	// no longer due.
	cancelled bool
}

func (r *replayer) diverges(ev *event.Event, what, recorded, now string) {
	if len(r.found.Divergences) < maxDivergences {
		r.found.Divergences = append(r.found.Divergences, Divergence{
			Seq: ev.Seq, Type: ev.Type(), What: what, Recorded: recorded, Now: now,
		})
	}
}

// step compares the next event with the actions that the machine wants before it.
func (r *replayer) step(m machine.Machine, ev *event.Event) error {
	r.found.Events++
	switch d := ev.Data.(type) {
	case event.RunStarted:
		return nil
	case event.RunForked:
		// A fork starts with an empty memo: a changed result may change the encoding of
		// the call before it, although the message is the same.
		r.memo = new(llm.Memo)
		return nil
	case event.ModelRequested:
		return r.request(m, ev, d)
	case event.ToolCall:
		r.intent(m, ev, d.CallID, func(a machine.Action) bool {
			resolve, ok := a.(machine.Resolve)
			if run, is := a.(machine.RunTool); is && run.Again != nil {
				resolve, ok = *run.Again, true
			}
			return ok && resolve.CallID == d.CallID && (resolve.Call.Name == d.Tool || resolve.Call.Name == llm.CallTool)
		})
		return nil
	case event.ToolStarted:
		r.intent(m, ev, d.CallID, func(a machine.Action) bool {
			run, ok := a.(machine.RunTool)
			if child, is := a.(machine.StartChild); is && child.Call != nil {
				run, ok = *child.Call, child.Child == ""
			}
			return ok && run.CallID == d.CallID && run.Attempt == d.Attempt && run.Key == d.Key
		})
		return nil
	case event.CommandStarted:
		r.intent(m, ev, d.ID, func(a machine.Action) bool {
			run, ok := a.(machine.RunCommand)
			return ok && run.ID == d.ID && run.Attempt == d.Attempt && run.Verdict != nil && slices.Equal(run.Argv, d.Argv)
		})
		return nil
	case event.PolicyDecision:
		if slices.ContainsFunc(m.Next(), func(a machine.Action) bool { return unjudged(a, d.CallID) }) {
			r.found.Decisions++
			return nil
		}
	case event.BudgetReserved:
		if drawn(m, d.ID) || d.Run != "" {
			r.found.Decisions++
			return nil
		}
	case event.BudgetCommitted:
		if d.Run != "" {
			return nil // the child's journal explains its own
		}
	case event.AnswerChecked:
		r.answer(m, ev, d)
		return nil
	case event.HookResult:
		r.hook(m, ev, d)
		return nil
	case event.CancelRequested:
		r.cancelled = true
	case event.RunTerminatedBy:
		r.broken = r.broken || d.Reason == event.ReasonInternal
	}
	return r.decision(m, ev)
}

// drawn reports whether the run wants a reservation with that id from its parent.
func drawn(m machine.Machine, id string) bool {
	a, ok := drive.Due[machine.Reserve](m)
	return ok && a.ID == id
}

// unjudged reports whether an action wants the policy decision about a command with
// that id.
func unjudged(a machine.Action, id string) bool {
	run, ok := a.(machine.RunCommand)
	return ok && run.ID == id && run.Verdict == nil
}

// hook compares the result of a hook with the hooks that are due.
func (r *replayer) hook(m machine.Machine, ev *event.Event, d event.HookResult) {
	actions := m.Next()
	switch {
	case slices.ContainsFunc(actions, func(a machine.Action) bool { return concerns(a, d) }):
		r.found.Decisions++
	case !r.cancelled:
		r.diverges(ev, "the hook "+d.Hook+" is not due", "", describeActions(actions))
	}
}

// concerns reports whether an action runs the hook of a result, or records that the
// hook did not run.
func concerns(a machine.Action, d event.HookResult) bool {
	switch a := a.(type) {
	case machine.RunHook:
		return a.CallID == d.CallID && a.Stage == d.Stage && a.Hook == d.Hook
	case machine.Record:
		r, ok := a.Data.(event.HookResult)
		return ok && r.CallID == d.CallID && r.Stage == d.Stage && r.Hook == d.Hook
	}
	return false
}

// intent compares an intent with the actions that are due.
func (r *replayer) intent(m machine.Machine, ev *event.Event, callID string, is func(machine.Action) bool) {
	actions := m.Next()
	if slices.ContainsFunc(actions, is) {
		r.found.Decisions++
		return
	}
	r.diverges(ev, "this is not due for "+callID, "", describeActions(actions))
}

// answer checks an answer against the schema again.
func (r *replayer) answer(m machine.Machine, ev *event.Event, d event.AnswerChecked) {
	a, ok := drive.Due[machine.CheckAnswer](m)
	if !ok {
		r.diverges(ev, "no answer is to be checked", "", describeActions(m.Next()))
		return
	}
	r.found.Decisions++
	if now := drive.CheckAnswer(a); now.Problem != d.Problem {
		r.diverges(ev, "the answer is judged otherwise", d.Problem, now.Problem)
	}
}

func (r *replayer) request(m machine.Machine, ev *event.Event, d event.ModelRequested) error {
	r.found.Requests++
	a, ok := drive.Due[machine.CallModel](m)
	if !ok {
		r.diverges(ev, "no model call is due", d.Model, describeActions(m.Next()))
		return nil
	}
	r.found.Decisions++
	if a.Target != d.Model || a.Attempt != d.Attempt {
		r.diverges(ev, "another call is due", attemptOf(d.Model, d.Attempt), attemptOf(a.Target, a.Attempt))
		return nil
	}
	if d.RequestDigest == "" {
		return nil
	}
	encoded, err := r.encode(a)
	if err != nil || encoded == nil {
		return nil // the wire is not available, and Compared does not count the request
	}
	r.found.Compared++
	if encoded.Digest != d.RequestDigest || encoded.Len() != d.RequestBytes {
		r.diverges(ev, "the request has other bytes", bytesOf(d.RequestDigest, d.RequestBytes), bytesOf(encoded.Digest, encoded.Len()))
	}
	return nil
}

// encode returns a request's bytes.
func (r *replayer) encode(a machine.CallModel) (*llm.Encoded, error) {
	model, name, err := r.open(a.Target)
	if err != nil {
		return nil, err
	}
	req := a.Request
	req.Model, req.Memo = name, r.memo
	return encode(model, &req)
}

func attemptOf(model string, attempt int) string { return model + ", attempt " + strconv.Itoa(attempt) }

func bytesOf(digest string, n int64) string { return fmt.Sprintf("%s (%d bytes)", digest, n) }

// decision compares an event with the decisions that are due. An event that is no
// decision of a machine came from outside: a settlement, a person or a driver.
func (r *replayer) decision(m machine.Machine, ev *event.Event) error {
	recorded, err := dataOf(ev.Data)
	if err != nil {
		return err
	}
	var near []byte
	for _, a := range m.Next() {
		record, ok := a.(machine.Record)
		if !ok || record.Data.EventType() != ev.Type() || event.CallOf(record.Data) != event.CallOf(ev.Data) {
			continue
		}
		now, err := dataOf(record.Data)
		if err != nil {
			return err
		}
		if bytes.Equal(now, recorded) {
			r.found.Decisions++
			return nil
		}
		if near == nil {
			near = now
		}
	}
	switch {
	case r.broken || near == nil && !machineMade(ev.Data) || byDriver(ev.Data):
	case near == nil:
		r.diverges(ev, "this is not decided", string(recorded), describeActions(m.Next()))
	default:
		r.diverges(ev, "another decision", string(recorded), string(near))
	}
	return nil
}

// machineMade reports whether only a machine decides events of this type.
func machineMade(d event.Data) bool {
	switch d.(type) {
	case event.ToolInputRequired: // the settlement of an attempt
		return false
	case event.CycleStart, event.PolicyDecision, event.Asking, event.ToolResults, event.Nudge, event.Stuck,
		event.ModelRetrying, event.ToolRetrying, event.BudgetReserved, event.BudgetCommitted, event.BudgetWarning, event.BudgetOverrun,
		event.HistoryCompressed,
		event.RunTerminatedBy, event.RunCompleted:
		return true
	}
	return false
}

// byDriver reports whether a driver parked the run.
func byDriver(d event.Data) bool {
	parked, ok := d.(event.RunParked)
	return ok && (parked.Reason == event.ParkInterrupted || parked.Reason == event.ParkApproval)
}

// dataOf returns an event's payload in its stored form.
func dataOf(d event.Data) ([]byte, error) {
	return event.Encode(&event.Event{Data: event.Unexplained(d)})
}

// describeActions lists the types of actions.
func describeActions(actions []machine.Action) string {
	var b bytes.Buffer
	for i, a := range actions {
		if i > 0 {
			b.WriteString(", ")
		}
		switch a := a.(type) {
		case machine.Record:
			b.WriteString(string(a.Data.EventType()))
		case machine.CallModel:
			b.WriteString("a call of " + attemptOf(a.Target, a.Attempt))
		case machine.RunTool:
			b.WriteString("attempt " + strconv.Itoa(a.Attempt) + " at " + a.CallID)
		case machine.RunCommand:
			b.WriteString("attempt " + strconv.Itoa(a.Attempt) + " at the command " + a.ID)
		case machine.StartChild:
			b.WriteString("the run of " + a.ID)
		case machine.CancelChild:
			b.WriteString("the end of run " + a.Child)
		case machine.Reserve:
			b.WriteString("reservation " + a.ID + " of the run above")
		case machine.RunHook:
			b.WriteString("the hook " + a.Hook)
		case machine.Resolve:
			b.WriteString("the facts about " + a.CallID)
		case machine.CheckAnswer:
			b.WriteString("a check of the answer")
		case machine.Wait:
			b.WriteString("the wait " + a.ID)
		case machine.Evaluate:
			b.WriteString("what " + a.Expression + " gives")
		case machine.Observe:
			b.WriteString("iteration " + strconv.Itoa(a.Iteration.Number))
		case machine.Ask:
			for i, q := range a.Questions {
				if i > 0 {
					b.WriteString(", ")
				}
				b.WriteString("a decision on " + q.ID)
			}
		}
	}
	return b.String()
}
