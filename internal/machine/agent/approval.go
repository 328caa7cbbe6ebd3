package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/llm"
)

// resolve requests the facts about the call as it will run.
func (c *call) resolve() machine.Resolve {
	r := machine.Resolve{CallID: c.ref.CallID, Call: c.ref}
	if c.given != nil {
		r.Call.Args, r.Call.ArgsText, r.EditedBy = c.given.args, "", c.given.by
	}
	return r
}

// key is the call's idempotency key. A call with other arguments is another action.
func (c *call) key(run string) string {
	key := run + ":" + c.ref.CallID
	if c.edit != nil {
		key += ":" + c.resolved.Digest
	}
	return key
}

// undecided reports whether [Machine.nextStep] may have a step for the call, ignoring
// run-wide conditions.
func (p *permissions) undecided(r *run, c *call) bool {
	switch {
	case !c.idle():
		return false
	case c.resolved == nil || c.resolved.Problem != nil || c.orphan || c.retry.due() || c.repeats.blocked != nil,
		c.verdict == nil || !permits(c.verdict.Decision):
		return true
	case c.form != nil:
		return p.nextForm(r, c) != nil
	case unasked(c.verdict.Decision):
		return p.rules(r).Met(c.resolved)
	}
	return c.pending == nil || p.nextApproval(r, c) != nil
}

// nextApproval brings a call that needs an approval one step further.
func (p *permissions) nextApproval(r *run, c *call) machine.Action {
	if c.pending == nil {
		return record(p.question(r, c))
	}
	decided := c.approval()
	if decided == nil {
		return p.answer(r, c)
	}
	switch decided.Kind {
	case event.ApprovalApproved:
		return nil
	case event.ApprovalExpired:
		return record(c.rejected(event.ErrorExpired, undecidedInTime))
	}
	return record(c.rejected(event.ErrorRejected, decided.Reason))
}

// answer decides a question without a person, or returns nil if a person must decide.
func (p *permissions) answer(r *run, c *call) machine.Action {
	switch by := p.since(r, c); {
	case p.editorApproves(r, c):
		return record(c.pending.Resolve(event.Resolution{
			Kind: event.ApprovalApproved, Approver: c.edit.Approver, Reason: c.edit.Reason, At: c.edit.At, Principal: c.edit.Principal,
		}))
	case r.cfg.answeredBy() != "":
		return record(r.answerBeforehand(c))
	case c.pending.Late(r.Now):
		return record(c.resolution(event.ApprovalExpired, "", undecidedInTime, later(*c.pending.ExpiresAt, r.TakenUp)))
	case by != nil:
		return record(c.pending.Resolve(event.Resolution{
			Kind: event.ApprovalApproved, Approver: by.By, Reason: "allowed for this run: " + by.Permission.String(), At: later(c.since, r.TakenUp), Principal: by.Principal,
		}))
	}
	return nil
}

// since returns the permission that a person gave after the question about a
// call was asked, if it makes the question unnecessary; nil for none.
func (p *permissions) since(r *run, c *call) *event.PermissionAdded {
	if c.pending.Offer == nil || c.attempt > 0 || len(p.added) == 0 || !unasked(p.judge(r, c).Decision) {
		return nil
	}
	for i := range p.added {
		if p.added[i].Permission == *c.pending.Offer {
			return &p.added[i]
		}
	}
	return nil
}

// maxForms bounds how often a call may ask for input. No budget counts its attempts.
const maxForms = 20

// nextForm brings a call that asks a person for input one step further. A setting that
// answers every question declines it: to approve everything invents no input. It answers
// one that only asks for consent. One with a command waits for a person, as a login does.
func (p *permissions) nextForm(r *run, c *call) machine.Action {
	at := later(c.since, r.TakenUp)
	decide := func(kind event.ApprovalKind, by, why string, at time.Time) machine.Action {
		d := event.Resolution{Kind: kind, Approver: by, Reason: why, At: at}
		if kind == event.ApprovalAnswered {
			d.Args = json.RawMessage("{}")
		}
		return record(c.form.Resolve(d))
	}
	asked, _ := c.form.Asking.(event.ToolInputRequired)
	switch by, d := r.cfg.answeredBy(), c.form.Decided(); {
	case d != nil && d.Kind == event.ApprovalExpired:
		return record(c.rejected(event.ErrorExpired, undecidedInTime))
	case d != nil:
		return nil
	case c.forms > maxForms:
		return record(c.failed(event.ErrorTool, fmt.Sprintf("the call has asked for input %d times, so it is not made again", maxForms)))
	case by != "" && asked.Form.Consent != "" && r.cfg.Approve != ApproveDeny:
		return decide(event.ApprovalAnswered, by, "decided by the run's setting "+by, at)
	case by != "" && r.cfg.Approve != ApproveBypass && asked.Form.Command == "":
		return decide(event.ApprovalRejected, by, "declined by the run's setting "+by+", which invents no input", at)
	case c.form.Late(r.Now):
		return decide(event.ApprovalExpired, "", undecidedInTime, later(*c.form.ExpiresAt, r.TakenUp))
	}
	return nil
}

const undecidedInTime = "nobody decided in time"

// question opens an approval with its subject, its rule and its expiry.
func (p *permissions) question(r *run, c *call) event.ToolPendingApproval {
	q := event.ToolPendingApproval{
		CallID: c.ref.CallID, Tool: c.ref.Name, Args: c.resolved.Args, Digest: c.resolved.Digest,
		Reason: c.verdict.Reason, Rule: c.verdict.Rule, Policy: p.policy,
	}
	if c.resolved.Facts != nil {
		q.Risk, q.Runs = c.resolved.Facts.Risk, c.resolved.Facts.Runs
		q.Digest = event.AskedDigest(q.Digest, c.resolved.Facts.Bound(c.ref.Name))
	}
	if c.hooks.asked == nil {
		q.Offer = p.rules(r).Permission(c.resolved)
	}
	if s := r.cfg.Approvals.Seconds; s > 0 {
		at := later(c.since, r.TakenUp).Add(time.Duration(s * float64(time.Second)))
		q.ExpiresAt, q.OnExpiry = &at, r.cfg.Approvals.OnTimeout
	}
	return q
}

// later is the time that counts for a decision about a call. It depends on the call
// alone, not on other decisions of the same moment, so that a replay computes the same.
func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func (c *call) resolution(kind event.ApprovalKind, by, why string, at time.Time) event.Resolving {
	return c.pending.Resolve(event.Resolution{Kind: kind, Approver: by, Reason: why, At: at})
}

// answeredBy names the setting that answers every question in advance, or is empty.
func (c *Config) answeredBy() string {
	switch c.Approve {
	case ApproveAll, ApproveDeny:
		return "--approve " + string(c.Approve)
	case ApproveBypass:
		return "approvals.mode: bypass"
	}
	return ""
}

func (r *run) answerBeforehand(c *call) event.Resolving {
	kind := event.ApprovalApproved
	if r.cfg.Approve == ApproveDeny {
		kind = event.ApprovalRejected
	}
	by := r.cfg.answeredBy()
	return c.resolution(kind, by, "decided by the run's setting "+by, later(c.since, r.TakenUp))
}

// editorApproves reports whether the person who edited the call has approved the
// result: that person wrote these arguments, and no rule asks about them that did not
// ask about the original ones.
func (p *permissions) editorApproves(r *run, c *call) bool {
	if c.edit == nil || c.edit.spent || c.edit.Policy != c.pending.Policy || c.hooks.added(c.edit.asked) {
		return false
	}
	rules := p.rules(r)
	_, before := rules.Explain(c.edit.before)
	_, now := rules.Explain(c.resolved)
	return !slices.ContainsFunc(now, func(v policy.Verdict) bool {
		return v.Decision == event.DecisionAsk && !slices.Contains(before, v)
	})
}

// judgeBy continues under another reading of the rules. Open and answered questions of
// the earlier one are judged again.
func (p *permissions) judgeBy(reading string, calls []*call) {
	if reading == "" {
		return
	}
	_, rules, _ := strings.Cut(p.policy, "/")
	p.policy = reading + "/" + rules
	for _, c := range calls {
		if c.result == nil && c.pending != nil && c.pending.Policy != p.policy {
			c.judged(nil)
		}
	}
}

// maxEditedArgs bounds the edited arguments in the message to the model.
const maxEditedArgs = 4000

// modelOutput returns a call's result as the model sees it. The conversation keeps the model's
// arguments, so the result of a call with other arguments shows those.
func (c *call) modelOutput(output string) string {
	if c.given == nil || c.resolved == nil {
		return output
	}
	args := string(c.resolved.Args)
	if utf8.RuneCountInString(args) > maxEditedArgs {
		args = string([]rune(args)[:maxEditedArgs]) + "… (cut)"
	}
	note := "[" + c.given.by + " changed the arguments of this call to " + args
	if c.given.reason != "" {
		note += ". Reason: " + c.given.reason
	}
	return output + "\n" + note + "]"
}

// failureCounts counts the failures in a row of a run's calls.
type failureCounts struct {
	// failures counts the newest calls back to the last success, and answers the
	// answers that they came from.
	failures, answers int
	// deserted counts the newest cycles in which no call had an existing tool.
	deserted int
}

// maxDeserted is how many cycles in a row may call only tools that do not exist any
// more: the model gets one message and may find another way.
const maxDeserted = 2

// settled folds the results of a cycle with calls.
func (s *failureCounts) settled(calls []*call) {
	deserted, failed := true, false
	for _, c := range calls {
		switch {
		case !c.result.IsError:
			s.failures, s.answers, failed = 0, 0, false
		case ownFailure(c.result.ErrorType):
			s.failures, failed = s.failures+1, true
		}
		deserted = deserted && unavailable(c.result.ErrorType)
	}
	if failed {
		s.answers++
	}
	if s.deserted++; !deserted {
		s.deserted = 0
	}
}

// ownFailure reports whether the call itself failed, rather than the run.
func ownFailure(kind event.ErrorType) bool {
	switch kind {
	case "", event.ErrorTruncated, event.ErrorCancelled, event.ErrorBudget, event.ErrorInDoubt:
		return false
	}
	return true
}

func unavailable(kind event.ErrorType) bool {
	return kind == event.ErrorUnavailable || kind == event.ErrorWorkspace
}

// endedByRefusal ends the run on a refused call if the owner wants that, each kind of
// refusal with its own reason.
func (s *calls) endedByRefusal(cfg *Config) machine.Action {
	for _, c := range s.list {
		switch v, a := c.verdict, c.approval(); {
		case cfg.OnDenied == RefusedStop && v != nil && !permits(v.Decision):
			return fail(event.ReasonPolicyDenied, string(event.ErrorDenied), sentence(c.ref.Name+" was denied", v.Rule, v.Reason))
		case cfg.OnRejected == RefusedStop && a != nil && a.Kind == event.ApprovalRejected:
			return fail(event.ReasonRejected, string(event.ErrorRejected), sentence(c.ref.Name+" was rejected by "+a.Approver, a.Reason))
		}
	}
	return nil
}

// endedByFailures ends the run when too many calls in a row failed, or when their tools
// are gone.
func (n *failureCounts) endedByFailures(cfg *Config, calls []*call) machine.Action {
	switch most := cfg.FailureThreshold; {
	case n.deserted >= maxDeserted:
		c := calls[len(calls)-1]
		return fail(event.ReasonToolUnavailable, string(c.result.ErrorType), "the tools that the model asks for are not there any more; the last was "+c.ref.Name)
	case most > 0 && n.failures >= most && n.answers >= cfg.FailureAnswers:
		return record(event.RunTerminatedBy{
			Reason: event.ReasonRepeatedFailure, Limit: "failure_threshold",
			Detail: fmt.Sprintf("%d calls failed in a row, the last with %s", n.failures, calls[len(calls)-1].result.ErrorType),
		})
	}
	return nil
}

// unfit is the result of a call that cannot run as requested. A tool that is gone but
// that the run began with is not unknown.
func (c *call) unfit(cfg *Config) event.ToolResult {
	p := c.resolved.Problem
	if p.Type == event.ErrorUnknownTool && c.ref.Name != llm.CallTool && slices.ContainsFunc(cfg.Tools, func(t llm.ToolDef) bool { return t.Name == c.ref.Name }) {
		return c.failed(event.ErrorUnavailable, "the tool "+c.ref.Name+" is not there any more; "+c.problem())
	}
	return c.failed(p.Type, c.problem())
}

// unread quotes unreadable arguments, because the conversation does not contain them.
func (c *call) unread() string {
	if c.resolved.ArgsText == "" || c.resolved.Problem == nil {
		return ""
	}
	return " (" + c.resolved.Problem.Message + ")"
}

// endedByExpiry ends a run whose configuration ends it when a question expires.
func (s *calls) endedByExpiry(cfg *Config) machine.Action {
	if cfg.Approvals.OnTimeout != TimeoutStop {
		return nil
	}
	for _, c := range s.list {
		if c.result.ErrorType == event.ErrorExpired {
			return record(event.RunTerminatedBy{
				Reason: event.ReasonRejected, Limit: "approvals.timeout", Detail: "nobody decided about " + c.ref.CallID + " in time",
			})
		}
	}
	return nil
}
