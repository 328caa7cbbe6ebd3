// Package replay runs the loop of a run again with the recorded answers of its
// models, its tools and people, and without any effect, to compare it with the
// journal or to try other settings.
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

// maxDivergences is how many divergences a replay reports; the first is the
// one that counts.
const maxDivergences = 20

// Divergence is a place where a run's loop would act differently today.
type Divergence struct {
	Seq  int64      `json:"seq"`
	Type event.Type `json:"type"`
	// What differs, and what is there on both sides.
	What     string `json:"what"`
	Recorded string `json:"recorded,omitempty"`
	Now      string `json:"now,omitempty"`
}

// String says it in one line.
func (d Divergence) String() string {
	text := fmt.Sprintf("event %d (%s): %s", d.Seq, d.Type, d.What)
	if d.Recorded != "" || d.Now != "" {
		text += fmt.Sprintf(": recorded %s, now %s", cmp.Or(d.Recorded, "nothing"), cmp.Or(d.Now, "nothing"))
	}
	return text
}

// Replayed is what a replay of a run found.
type Replayed struct {
	Run    string `json:"run"`
	Events int64  `json:"events"`
	// Decisions is how many events the machine decided again.
	Decisions int `json:"decisions"`
	// Requests is how many model requests were made again, and Compared how
	// many of them byte for byte: a scripted model sends no bytes.
	Requests    int          `json:"requests"`
	Compared    int          `json:"compared"`
	Divergences []Divergence `json:"divergences"`
}

// Run runs a run's loop again with the recorded answers of its models, its tools
// and people, and without any effect. It compares every decision of the machine,
// and every request as the wire that open returns would send it, with the
// journal. open may fail for a model, whose requests are then not compared.
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
	// broken says that the engine ended the run, not its machine.
	broken bool
	// cancelled says that what a hook says may come too late.
	cancelled bool
}

func (r *replayer) diverges(ev *event.Event, what, recorded, now string) {
	if len(r.found.Divergences) < maxDivergences {
		r.found.Divergences = append(r.found.Divergences, Divergence{
			Seq: ev.Seq, Type: ev.Type(), What: what, Recorded: recorded, Now: now,
		})
	}
}

// step holds the next event against what the machine asks for before it.
func (r *replayer) step(m machine.Machine, ev *event.Event) error {
	r.found.Events++
	switch d := ev.Data.(type) {
	case event.RunStarted:
		return nil
	case event.RunForked:
		// A fork begins with nothing encoded: another result may change the form of
		// the call before it, which is the same message.
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
			return nil // a child's, whose journal says how it came about
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

// drawn reports whether the run asks the run above for a reservation of that id.
func drawn(m machine.Machine, id string) bool {
	a, ok := drive.Due[machine.Reserve](m)
	return ok && a.ID == id
}

// unjudged reports whether an action asks for a command of that id to be judged.
func unjudged(a machine.Action, id string) bool {
	run, ok := a.(machine.RunCommand)
	return ok && run.ID == id && run.Verdict == nil
}

// hook holds the result of a hook against the hooks that are due.
func (r *replayer) hook(m machine.Machine, ev *event.Event, d event.HookResult) {
	actions := m.Next()
	switch {
	case slices.ContainsFunc(actions, func(a machine.Action) bool { return concerns(a, d) }):
		r.found.Decisions++
	case !r.cancelled:
		r.diverges(ev, "the hook "+d.Hook+" is not due", "", describeActions(actions))
	}
}

// concerns reports whether an action asks for the hook that gave a result, or records
// that it did not run.
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

// intent looks for the action that an intent is of.
func (r *replayer) intent(m machine.Machine, ev *event.Event, callID string, is func(machine.Action) bool) {
	actions := m.Next()
	if slices.ContainsFunc(actions, is) {
		r.found.Decisions++
		return
	}
	r.diverges(ev, "this is not due for "+callID, "", describeActions(actions))
}

// answer holds an answer against the schema again.
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
		return nil // the wire is not there; the count of compared requests says so
	}
	r.found.Compared++
	if encoded.Digest != d.RequestDigest || encoded.Len() != d.RequestBytes {
		r.diverges(ev, "the request has other bytes", bytesOf(d.RequestDigest, d.RequestBytes), bytesOf(encoded.Digest, encoded.Len()))
	}
	return nil
}

// encode makes a request's bytes. An adapter that panics makes none.
func (r *replayer) encode(a machine.CallModel) (encoded *llm.Encoded, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the model adapter panicked: %v", p)
		}
	}()
	model, name, err := r.open(a.Target)
	if err != nil {
		return nil, err
	}
	enc, ok := model.(llm.Encoder)
	if !ok {
		return nil, nil
	}
	req := a.Request
	req.Model, req.Memo = name, r.memo
	return enc.Encode(&req)
}

func attemptOf(model string, attempt int) string { return model + ", attempt " + strconv.Itoa(attempt) }

func bytesOf(digest string, n int64) string { return fmt.Sprintf("%s (%d bytes)", digest, n) }

// decision holds an event against the decisions that are due. One that the
// machine does not decide came from outside: a settlement, a person, a driver.
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

// machineMade reports whether only a machine decides such an event.
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

// dataOf is an event's payload in its stored form.
func dataOf(d event.Data) ([]byte, error) {
	return event.Encode(&event.Event{Data: event.Unexplained(d)})
}

// describeActions names what a machine asks for.
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
