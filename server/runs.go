package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/control"
	"github.com/pawlrun/pawl/engine"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/launch"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/spec"
)

// order is what a client wants run.
type order struct {
	agent, input, model string
	spec                json.RawMessage
	budget              *float64
	vars                map[string]string
}

// startRun makes a run of an agent of the directory, or of one that the body
// brings, and drives it.
func (s *Server) startRun(w http.ResponseWriter, r *http.Request) error {
	o, err := readOrder(w, r)
	if err != nil {
		return err
	}
	started, env, err := s.prepare(o)
	if err != nil {
		return err
	}
	id, err := s.start(started, env)
	if err != nil {
		return err
	}
	row, err := s.store.Run(context.WithoutCancel(r.Context()), id)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/v1/runs/"+id)
	s.answer(w, r, http.StatusCreated, row)
	return nil
}

func readOrder(w http.ResponseWriter, r *http.Request) (order, error) {
	var o order
	if err := readBody(w, r, orderFields(&o)...); err != nil {
		return o, err
	}
	return o, o.check()
}

func orderFields(o *order) []field {
	return []field{
		{"agent", &o.agent, "the name of an agent, as a text"},
		{"spec", &o.spec, "an agent file, as an object or as a text in YAML"},
		{"input", &o.input, "a text"},
		{"model", &o.model, "provider/model, as a text"},
		{"budget", &o.budget, "an amount in USD, as a number"},
		{"vars", &o.vars, "an object of texts"},
	}
}

// check says what is wrong with an order before anything is read for it.
func (o *order) check() error {
	wrong := func(pointer, next, format string, args ...any) error {
		return kindBody.problem(next, format, args...).at(pointer)
	}
	switch given := o.spec != nil; {
	case given && o.agent != "":
		return wrong("/spec", "give agent or spec", "agent and spec exclude each other")
	case !given && o.agent == "":
		return wrong("/agent", "name one of the agents at /v1/agents, or send an agent file as spec", "there is neither agent nor spec")
	case o.model != "" && !strings.Contains(o.model, "/"):
		return wrong("/model", "write provider/model, for example anthropic/claude-sonnet-4-5", "the model is %q", o.model)
	case o.budget != nil && *o.budget <= 0:
		return wrong("/budget", "give more than 0, or leave it out for the default", "the budget is %g", *o.budget)
	}
	return nil
}

// prepare makes what starts a run; nothing has begun when it fails.
func (s *Server) prepare(o order) (event.RunStarted, engine.Env, error) {
	fail := func(err error) (event.RunStarted, engine.Env, error) { return event.RunStarted{}, engine.Env{}, err }
	l := s.launch
	l.Model, l.Vars, l.BudgetUSD = o.model, o.vars, o.budget
	if err := launch.ConfineScript(l.Dir, o.model); err != nil {
		return fail(kindAgent.problem("name a file of the agents directory", "%v", err).at("/model"))
	}
	var started event.RunStarted
	var env engine.Env
	var err error
	if o.spec != nil {
		name, text := sentFile(o.spec)
		started, env, err = launch.Sent(name, text, o.input, l)
	} else {
		var path string
		if path, err = s.agents.find(o.agent); err != nil {
			return fail(err)
		}
		started, env, err = launch.Agent(path, o.input, l)
	}
	if err != nil {
		return fail(cannotStart(err))
	}
	return started, env, nil
}

// cannotStart is a launch that failed: all that can be wrong there is the file
// or what it names.
func cannotStart(err error) error {
	if _, ok := errors.AsType[spec.Errors](err); ok {
		return err
	}
	return kindAgent.problem("put right what is missing, or change the agent", "%s", control.Plain(err))
}

// sentFile is an agent file that stands in a body: an object is JSON, a text is
// YAML.
func sentFile(raw json.RawMessage) (name string, text []byte) {
	var yaml string
	if json.Unmarshal(raw, &yaml) == nil {
		return "spec.yaml", []byte(yaml)
	}
	return "spec.json", raw
}

// list is one page of a list; Next is the cursor of the page after it.
type list[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"`
}

// listRuns gives the newest runs first. The cursor is the last run of the page
// before.
func (s *Server) listRuns(w http.ResponseWriter, r *http.Request) error {
	q, err := readQuery(r, "state")
	if err != nil {
		return err
	}
	filter := journal.Filter{Before: q.cursor, Limit: q.limit + 1}
	if filter.States, err = statesOf(q.values["state"]); err != nil {
		return err
	}
	if err := s.knowsCursor(r.Context(), q); err != nil {
		return err
	}
	rows, err := s.store.Runs(r.Context(), filter)
	if err != nil {
		return err
	}
	page := list[journal.Run]{Items: append([]journal.Run{}, rows[:min(len(rows), q.limit)]...)}
	if len(rows) > q.limit {
		page.Next = page.Items[q.limit-1].ID
	}
	s.answer(w, r, http.StatusOK, page)
	return nil
}

// statesOf reads the states that a list is narrowed to.
func statesOf(names []string) ([]journal.State, error) {
	var out []journal.State
	for _, name := range names {
		if !slices.Contains(journal.States(), journal.State(name)) {
			return nil, kindQuery.problem("state can be queued, running, waiting, parked, paused or ended", "there is no state %q", name)
		}
		out = append(out, journal.State(name))
	}
	return out, nil
}

// knowsCursor refuses a cursor that is no run, which would give an empty page
// like the end of the list.
func (s *Server) knowsCursor(ctx context.Context, q query) error {
	if q.cursor == "" {
		return nil
	}
	_, err := s.store.Run(ctx, q.cursor)
	if errors.Is(err, journal.ErrNotFound) {
		return noSuchPlace("run", q.cursor)
	}
	return err
}

// shown is a run as it stands, from its row and from a fold of its journal.
type shown struct {
	journal.Run
	Usage   llm.Usage         `json:"usage"`
	Cost    llm.Cost          `json:"cost"`
	Pending []control.Pending `json:"pending"`
	Taint   event.Taint       `json:"taint,omitzero"`
}

func (s *Server) showRun(w http.ResponseWriter, r *http.Request) error {
	row, err := s.find(r)
	if err != nil {
		return err
	}
	m, err := s.engine.Inspect(r.Context(), row.ID)
	if err != nil {
		return err
	}
	pending, err := s.desk.Pending(r.Context(), row.ID)
	if err != nil {
		return err
	}
	state := m.State()
	s.answer(w, r, http.StatusOK, shown{
		Run: row, Usage: state.Usage, Cost: state.Cost, Taint: state.Taint, Pending: append([]control.Pending{}, pending...),
	})
	return nil
}

// find returns the row of the run that a path names.
func (s *Server) find(r *http.Request) (journal.Run, error) {
	id := r.PathValue("id")
	row, err := s.store.Run(r.Context(), id)
	if errors.Is(err, journal.ErrNotFound) {
		return row, kindNotFound.problem("list the runs at /v1/runs", "there is no run %q", id).about(id, "")
	}
	if err != nil {
		return row, problemOf(err).about(id, "")
	}
	return row, nil
}
