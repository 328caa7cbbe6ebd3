package server

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/engine/holder"
	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/access"
	"github.com/pawlrun/pawl/internal/server/socketio/session"
	"github.com/pawlrun/pawl/internal/tenants"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/tool"
)

// Problem is the answer to a failed request: problem details (RFC 9457). It names
// the object, the place and the next step.
type Problem struct {
	// Type is a stable name of the kind of problem, Title the text for people.
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail describes this request; Instance is its path.
	Detail   string `json:"detail"`
	Instance string `json:"instance,omitempty"`
	// Next is what to do about it.
	Next string `json:"next,omitempty"`
	// Run and CallID name the run and the call of the problem, if any.
	Run    string `json:"run,omitempty"`
	CallID string `json:"callId,omitempty"`
	// Pointer is the place in the request's body, as a JSON Pointer.
	Pointer string `json:"pointer,omitempty"`
	// Errors are the errors of an agent file.
	Errors decode.Errors `json:"errors,omitempty"`
	// Fields are the fields of a form whose answers do not fit.
	Fields []tool.FieldError `json:"fields,omitempty"`
	// Decision is the decision that counts, for one that came too late.
	Decision any `json:"decision,omitempty"`

	// retryAfter is when to repeat the request.
	retryAfter time.Duration
}

// Error returns the problem in one line.
func (p *Problem) Error() string { return p.Title + ": " + p.Detail }

// kind is a kind of problem of this server.
type kind struct {
	status      int
	name, title string
}

// The kinds of problems. Their names are part of the stable API.
var (
	kindNotFound    = kind{http.StatusNotFound, "not-found", "There is no such thing"}
	kindMethod      = kind{http.StatusMethodNotAllowed, "method-not-allowed", "This path is not used like that"}
	kindToken       = kind{http.StatusUnauthorized, "no-token", "A token is needed"}
	kindBusy        = kind{http.StatusTooManyRequests, "too-many-requests", "There were too many requests"}
	kindBudget      = kind{http.StatusPaymentRequired, "tenant-budget-exhausted", "The budget is used up"}
	kindForbidden   = kind{http.StatusForbidden, "forbidden", "This request is not allowed"}
	kindMediaType   = kind{http.StatusUnsupportedMediaType, "not-json", "The body is not JSON"}
	kindTooLarge    = kind{http.StatusRequestEntityTooLarge, "too-large", "The body is too large"}
	kindBody        = kind{http.StatusBadRequest, "bad-body", "The body is not what this path takes"}
	kindQuery       = kind{http.StatusBadRequest, "bad-query", "A parameter is not what this path takes"}
	kindAgent       = kind{http.StatusUnprocessableEntity, "bad-agent", "The file cannot be run"}
	kindArgs        = kind{http.StatusUnprocessableEntity, "bad-args", "The tool would refuse these arguments"}
	kindFork        = kind{http.StatusUnprocessableEntity, "bad-fork", "The run cannot be forked like that"}
	kindLimit       = kind{http.StatusUnprocessableEntity, "bad-limit", "The limit cannot be changed to that"}
	kindKey         = kind{http.StatusBadRequest, "bad-key", "The Idempotency-Key is none"}
	kindUnderway    = kind{http.StatusConflict, "not-answered-yet", "The same request is about to be answered"}
	kindReused      = kind{http.StatusUnprocessableEntity, "key-reused", "The Idempotency-Key belongs to another request"}
	kindUnknown     = kind{http.StatusConflict, "perhaps-done", "It is unknown whether the request was done"}
	kindNotPending  = kind{http.StatusNotFound, "not-pending", "The call waits for no decision"}
	kindDecided     = kind{http.StatusConflict, "already-decided", "The call has been decided"}
	kindChanged     = kind{http.StatusConflict, "question-changed", "The question is another one now"}
	kindEnded       = kind{http.StatusConflict, "run-ended", "The run has ended"}
	kindDriven      = kind{http.StatusConflict, "run-driven", "The run is already running"}
	kindGoing       = kind{http.StatusConflict, "run-not-ended", "The run has not ended"}
	kindForked      = kind{http.StatusConflict, "run-forked", "Other runs share its events"}
	kindStands      = kind{http.StatusConflict, "run-stands-still", "The run is not running"}
	kindCannotGo    = kind{http.StatusConflict, "cannot-go-on", "The run cannot be resumed here"}
	kindSecrets     = kind{http.StatusConflict, "secrets-missing", "The run's secrets are not known here"}
	kindDamaged     = kind{http.StatusConflict, "run-damaged", "The run's journal is damaged"}
	kindNoLoop      = kind{http.StatusConflict, "no-loop", "No loop runs on the agent"}
	kindLoopOff     = kind{http.StatusConflict, "loop-off", "The agent does not loop"}
	kindLoopRuns    = kind{http.StatusConflict, "loop-runs", "A loop runs on the agent already"}
	kindClosed      = kind{http.StatusBadRequest, "connection-closed", "The connection was closed before the answer"}
	kindUnavailable = kind{http.StatusServiceUnavailable, "unavailable", "Not available now"}
	kindInternal    = kind{http.StatusInternalServerError, "internal", "The server failed"}
)

// problemType is the prefix of all problem types.
const problemType = "urn:pawl:problem:"

func (k kind) problem(next, format string, args ...any) *Problem {
	return &Problem{
		Type: problemType + k.name, Title: k.title, Status: k.status,
		Detail: fmt.Sprintf(format, args...), Next: next,
	}
}

// about sets the run and the call of a problem.
func (p *Problem) about(run, callID string) *Problem {
	p.Run, p.CallID = run, callID
	return p
}

// at sets the place in the request's body.
func (p *Problem) at(pointer string) *Problem {
	p.Pointer = pointer
	return p
}

// problemOf converts any error to a problem.
func problemOf(err error) *Problem {
	if p := detailed(err); p != nil {
		return p
	}
	for _, known := range knownErrors {
		if errors.Is(err, known.is) {
			return known.kind.problem(known.next, "%s", cmp.Or(known.detail, control.Plain(err)))
		}
	}
	return kindInternal.problem("look at the server's log", "%s", control.Plain(err))
}

// damaged returns the problem of a run whose events cannot be read, nil for any other
// error. A retry would fail too, so it is no failure of the server.
func damaged(err error) *Problem {
	const next = "its /verify says where; what is still readable, its /export saves"
	if corrupt, ok := errors.AsType[*journal.CorruptError](err); ok {
		return kindDamaged.problem(next, "%v", corrupt).about(corrupt.Run, "")
	}
	if unreadable, ok := errors.AsType[*drive.UnreadableError](err); ok {
		return kindDamaged.problem(next, "%s", control.Plain(unreadable))
	}
	return nil
}

// detailed returns the problem of an error with details; nil for any other.
func detailed(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if d, ok := errors.AsType[*engine.DecidedError](err); ok {
		p := kindDecided.problem("read the run's approvals again; only the first decision counts", "%v", d)
		p.CallID, p.Decision = d.Decision.Resolution().ID, d.Decision
		return p
	}
	if several, ok := errors.AsType[*engine.AmbiguousError](err); ok {
		return kindNotPending.problem("send the decision to one of these runs", "%v", several).about(several.Run, several.ID)
	}
	if asked, ok := errors.AsType[*engine.MessageError](err); ok {
		return kindNotPending.problem("POST /v1/runs/"+asked.Run+"/input", "%v", asked).about(asked.Run, asked.Question.ID)
	}
	if used, ok := errors.AsType[*tenants.ExhaustedError](err); ok {
		return kindBudget.problem("raise the budget of "+used.Tenant+" in the file of tokens, or wait until "+used.Until.Format(time.RFC3339), "%v", used)
	}
	if held, ok := errors.AsType[*journal.HeldError](err); ok {
		return kindDriven.problem("follow it at /v1/runs/"+held.Run+"/events; commands reach it where it is", "run %s is driven by %s", held.Run, control.Driver(held.Owner)).about(held.Run, "")
	}
	if p := damaged(err); p != nil {
		return p
	}
	if shared, ok := errors.AsType[*journal.ForkedError](err); ok {
		return kindForked.problem("remove its forks first", "%v", shared).about(shared.Run, "")
	}
	if missing, ok := errors.AsType[*engine.SecretsError](err); ok {
		return kindSecrets.problem("start the server with the run's secrets", "%v", missing).about(missing.Run, "")
	}
	if denied, ok := errors.AsType[*access.DeniedError](err); ok && denied.Role == "" {
		return kindToken.problem(sendToken, "the request has no valid token")
	} else if ok {
		return kindForbidden.problem("use a token with the role "+string(denied.Need)+"; an admin may make one with 'pawl token create'", "%v", denied)
	}
	if child, ok := errors.AsType[*engine.ChildError](err); ok {
		return kindCannotGo.problem("POST /v1/runs/"+child.Root+"/resume", "%v", child).about(child.Run, "")
	}
	if wrong, ok := errors.AsType[decode.Errors](err); ok {
		p := kindAgent.problem("fix the places named in errors", "%v", wrong)
		p.Errors = wrong
		return p
	}
	return nil
}

// knownErrors maps errors to problems. Without a detail, the error's own text is
// the detail.
var knownErrors = []struct {
	is     error
	kind   kind
	detail string
	next   string
}{
	{engine.ErrNotPending, kindNotPending, "no call of that id waits for a decision", "read the run's approvals for the calls that wait"},
	{engine.ErrReplay, kindCannotGo, "", "start a new replay with 'pawl runs replay --live-model'"},
	{holder.ErrUnread, kindUnavailable, "only the process that drove the run could have read this, and it no longer does", "send it again"},
	{journal.ErrNotFound, kindNotFound, "it is not in the journal", "list the runs at /v1/runs"},
	{journal.ErrCorrupt, kindInternal, "", "'pawl runs verify' says where; what is still readable, 'pawl runs export' saves"},
	{journal.ErrEnded, kindEnded, "the run has ended and accepts no more commands", "start a new run; 'pawl run --continue' starts one from it"},
	{launch.ErrNoFile, kindCannotGo, "", "resume it in that program; decisions and messages are taken here, and count there"},
	{launch.ErrSandbox, kindCannotGo, "", "'pawl doctor' says what this machine can do"},
	{agent.ErrUnsupported, kindCannotGo, "the run was written by a newer version of Pawl", "use the version of Pawl that wrote the run"},
	{journal.ErrFull, kindUnavailable, "there is no space left for the journal", "free some space; nothing in the journal is lost"},
	{journal.ErrIO, kindUnavailable, "the disk under the journal failed", "check the disk, then start the server again: a journal whose disk failed accepts no writes until it is opened again"},
	{journal.ErrLocked, kindUnavailable, "another process has held the journal for too long", "try again when the other process is done with the journal"},
	{journal.ErrReadOnly, kindUnavailable, "the journal cannot be written", "change the permissions of the journal"},
	{journal.ErrReplaced, kindUnavailable, "the journal was deleted or replaced while the server had it open", "stop the program that replaced the journal's file, and start the server again"},
	{session.ErrShutdown, kindUnavailable, "the server is shutting down", "ask the next one"},
	{engine.ErrInterrupted, kindUnavailable, "the server is shutting down", "ask the next one"},
	{errTornDown, kindUnavailable, "the server is shutting down", "ask the next one"},
}
