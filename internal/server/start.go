package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/kinds"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/host/attach"
	"github.com/pawlrun/pawl/internal/host/workplace"
	"github.com/pawlrun/pawl/internal/rules/access"
	"github.com/pawlrun/pawl/journal"
)

// startRequest is the body of a start.
type startRequest struct {
	Agent    string          `json:"agent,omitempty" jsonschema:"the name of an agent, a team or a loop, as a text"`
	Workflow string          `json:"workflow,omitempty" jsonschema:"the name of a workflow or a goal, as a text"`
	Spec     json.RawMessage `json:"spec,omitempty" jsonschema:"a file of any kind, as an object or as a text in YAML"`
	Input    *string         `json:"input,omitempty" jsonschema:"a text"`
	Model    string          `json:"model,omitempty" jsonschema:"provider/model, as a text"`
	Budget   *float64        `json:"budget,omitempty" jsonschema:"an amount in USD, as a number"`
	// Workspace is where the run works; the server's workspace if it is absent.
	Workspace event.Place `json:"workspace,omitzero" jsonschema:"an object with host, label, or repo and ref: the machine that the run works on"`
	Vars      texts       `json:"vars,omitempty" jsonschema:"an object of texts"`
	// Priority is the priority among queued runs; 3 if it is absent.
	Priority int `json:"priority,omitempty" jsonschema:"1, which is first, to 5"`
	// Attachments are images and files sent with the input.
	Attachments []attachment `json:"attachments,omitempty" jsonschema:"a list of objects with name and data, or with run and index for what another run was given"`
}

// starting holds how the client waits for the run that it starts.
type starting struct {
	watching
	Wait seconds `json:"wait,omitempty" jsonschema:"how many seconds to wait for the outcome at most; the answer comes sooner where the run waits for a person"`
}

// check rejects parameters that do not apply to a start. A stream begins at once,
// and only a stream has live events, descendants, and a format.
func (q starting) check(streams bool) error {
	if streams && q.Wait > 0 {
		return kindQuery.problem("leave one of the two out", "wait is for an answer in JSON, and this asks for a stream")
	}
	if !streams && q.watching != (watching{}) {
		return kindQuery.problem("send the header Accept: text/event-stream, or leave them out", "tree, deltas and format are for streams, and this asks for an answer in JSON")
	}
	return q.watching.check()
}

// startRun starts a run of a file of the directory, or of one in the body. It
// answers at once, with the run's outcome, or with a stream of its events.
func (s *Server) startRun(a *apiRequest[starting, startRequest]) (journal.Run, error) {
	streams := wantsStream(a.Request)
	if err := a.query.check(streams); err != nil {
		return journal.Run{}, err
	}
	trace, _ := event.ParseTraceparent(a.Header.Get("Traceparent"))
	row, err := s.makeRun(a.Context(), a.body, trace)
	if err != nil {
		return journal.Run{}, err
	}
	a.w.Header().Set("Location", "/v1/runs/"+row.ID)
	if streams {
		t := s.streamOf(row, 0, a.query.watching)
		t.status = a.status
		return journal.Run{}, cmp.Or(t.serve(a.w, a.Request), errAnswered)
	}
	if a.query.Wait == 0 {
		return row, nil
	}
	return s.waited(a, row)
}

// makeRun creates the run of a body, once for each Idempotency-Key, in the trace of
// the request.
func (s *Server) makeRun(ctx context.Context, o startRequest, trace event.Trace) (journal.Run, error) {
	if err := o.check(); err != nil {
		return journal.Run{}, err
	}
	if o.Spec != nil || o.Workspace.Repo != "" { // a file may bound its run, also one in the body; a clone uses what the server may read
		if err := access.Authorise(principalOf(ctx), access.Admin); err != nil {
			return journal.Run{}, err
		}
	}
	id := reserved(ctx)
	if made, err := s.store.Run(ctx, id); id != "" && err == nil { // the same request created it
		return made, nil
	}
	leave, err := s.admitStart(ctx)
	if err != nil {
		return journal.Run{}, err
	}
	defer leave()
	id = cmp.Or(id, engine.NewID())
	l := s.launch
	at, elsewhere, done, err := s.beginAt(o.Workspace, &l)
	defer done()
	if err != nil {
		return journal.Run{}, err
	}
	started, env, err := s.prepare(ctx, o, l)
	if err != nil {
		return journal.Run{}, err
	}
	s.owners.own(ctx, &started)
	started.Trace, started.Place, started.Priority = trace, at, o.Priority
	if elsewhere {
		started.Workspace = "" // that of its worker
		err = s.queue(context.WithoutCancel(ctx), id, started, env)
	} else {
		err = s.start(id, started, env)
	}
	if err != nil && !errors.Is(err, journal.ErrExists) {
		return journal.Run{}, err
	}
	return s.store.Run(context.WithoutCancel(ctx), id)
}

const (
	// startsAtOnce bounds the starts that are prepared and journalled at once.
	startsAtOnce = 16
	// longestQueue bounds the wait of a start, so that its client is still
	// connected when the run begins. startAgain is when the client may retry.
	longestQueue = 5 * time.Second
	startAgain   = 5 * time.Second
)

// admitStart waits until a run may start, before any work on it. A start whose
// client disconnects, that waits too long, or whose tenant has no money left creates no
// run.
func (s *Server) admitStart(ctx context.Context) (leave func(), err error) {
	if s.budgets != nil {
		if err := s.budgets.Check(ctx, principalOf(ctx)); err != nil {
			return nil, err
		}
	}
	if err := s.mayQueue(ctx); err != nil {
		return nil, err
	}
	wait := time.NewTimer(longestQueue)
	defer wait.Stop()
	select {
	case s.starts <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.running.Done():
		return nil, context.Cause(s.running)
	case <-wait.C:
		p := kindUnavailable.problem("send it again after the seconds in the header Retry-After", "the server has too many starts at once; nothing was begun")
		p.retryAfter = startAgain
		return nil, p
	}
	leave = func() { <-s.starts }
	if err := ctx.Err(); err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// waited returns an ended run with its outcome, or its current state when the time
// is over, the server closes, or the run has parked until it receives a command.
func (s *Server) waited(a *apiRequest[starting, startRequest], row journal.Run) (journal.Run, error) {
	limit := time.Duration(a.query.Wait) * time.Second
	control := http.NewResponseController(a.w)
	// The request is complete; a test's recorder has no deadlines.
	_ = control.SetReadDeadline(time.Time{})
	_ = control.SetWriteDeadline(time.Now().Add(limit + wholeAnswer))
	ctx, cancel := context.WithTimeout(a.Context(), limit)
	defer cancel()
	defer context.AfterFunc(s.running, cancel)()
	row, err := s.until(ctx, row.ID, func(row journal.Run) bool {
		return row.State == journal.Ended || row.State == journal.Parked || row.State == journal.Paused
	})
	if err == nil && row.State != journal.Ended {
		a.status = http.StatusAccepted
	}
	return row, err
}

// check validates a start before anything is read for it.
func (o *startRequest) check() error {
	wrong := func(pointer, next, format string, args ...any) error {
		return kindBody.problem(next, format, args...).at(pointer)
	}
	given := 0
	for _, is := range []bool{o.Agent != "", o.Workflow != "", o.Spec != nil} {
		if is {
			given++
		}
	}
	switch {
	case given > 1:
		return wrong(o.last(), "give one of agent, workflow and spec", "agent, workflow and spec exclude each other")
	case given == 0:
		return wrong("/agent", "name one of the agents at /v1/agents or of the workflows at /v1/workflows, or send a file as spec", "there is none of agent, workflow and spec")
	case o.Model != "" && !strings.Contains(o.Model, "/"):
		return wrong("/model", "write provider/model, for example anthropic/claude-sonnet-4-5", "the model is %q", o.Model)
	case o.Input != nil && strings.TrimSpace(*o.Input) == "":
		return wrong("/input", "say what to do, or leave it out where the agent has prompt.task", "the input is empty")
	case len(o.Attachments) > attach.MaxFiles:
		return wrong("/attachments", "send fewer", "there are more than %d attachments", attach.MaxFiles)
	case workplace.Check(o.Workspace) != nil:
		return wrong("/workspace", `give {"host": NAME}, {"label": NAME} or {"repo": URL, "ref": NAME}`, "%v", workplace.Check(o.Workspace))
	case o.Priority < 0 || o.Priority > 5:
		return wrong("/priority", "give 1, which is first, to 5, or leave it out for 3", "the priority is %d", o.Priority)
	case o.Budget != nil && *o.Budget <= 0:
		return wrong("/budget", "give more than 0, or leave it out for the default", "the budget is %g", *o.Budget)
	}
	return nil
}

// last returns the place of the last of the keys that exclude each other.
func (o *startRequest) last() string {
	if o.Spec != nil {
		return "/spec"
	}
	return "/workflow"
}

// prepare builds what starts a run; after an error nothing has started.
func (s *Server) prepare(ctx context.Context, o startRequest, l launch.Options) (started event.RunStarted, env perform.Env, err error) {
	l.Model, l.Vars, l.BudgetUSD = o.Model, o.Vars, o.Budget
	input := ""
	if o.Input != nil {
		input = *o.Input
	}
	if l.Attachments, err = s.attached(ctx, o.Attachments); err != nil {
		return started, env, err
	}
	if err := launch.ConfineScript(l.Dir, o.Model); err != nil {
		return started, env, kindAgent.problem("name a file of the agents directory", "%v", err).at("/model")
	}
	if o.Spec != nil {
		name, text := sentFile(o.Spec)
		if err := decode.CheckSent(name, text); err != nil {
			return started, env, err
		}
		started, env, err = kinds.Sent(name, text).Launch(input, l)
		return started, env, cannotStart(err)
	}
	family, workflows := families()
	if o.Workflow != "" {
		family = workflows
	}
	f, err := s.files.find(family, cmp.Or(o.Agent, o.Workflow))
	if err == nil {
		err = s.mayBudget(ctx, f, o.Budget)
	}
	if err == nil {
		started, env, err = f.Launch(input, l)
	}
	if problem, is := errors.AsType[*Problem](err); is {
		return started, env, problem
	}
	return started, env, cannotStart(err)
}

// mayBudget stops an editor from setting a budget above the editor's maximum.
func (s *Server) mayBudget(ctx context.Context, f kinds.File, usd *float64) error {
	if usd == nil {
		return nil
	}
	file, err := f.Kind.CapUSD(f.Path, f.Text)
	if err != nil {
		return err
	}
	return s.maySpend(ctx, *usd, file, "/budget")
}

// cannotStart returns the problem of a failed launch, which is always caused by the
// file or by what it names.
func cannotStart(err error) error {
	if _, ok := errors.AsType[decode.Errors](err); ok || err == nil {
		return err
	}
	if errors.Is(err, launch.ErrNoInput) {
		return missing("input", "say what to do, or give the agent prompt.task")
	}
	return kindAgent.problem("fix what is missing, or change the agent", "%s", control.Plain(err))
}

// sentFile returns the agent file of a body: an object is JSON, a text is YAML.
func sentFile(raw json.RawMessage) (name string, text []byte) {
	var yaml string
	if json.Unmarshal(raw, &yaml) == nil {
		return "spec.yaml", []byte(yaml)
	}
	return "spec.json", raw
}
