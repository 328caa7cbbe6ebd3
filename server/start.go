package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/pawlrun/pawl/control"
	"github.com/pawlrun/pawl/engine"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/launch"
	"github.com/pawlrun/pawl/spec"
)

// order is what a client wants run.
type order struct {
	agent, input, model string
	spec                json.RawMessage
	budget              *float64
	vars                texts
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
func (s *Server) prepare(o order) (started event.RunStarted, env engine.Env, err error) {
	l := s.launch
	l.Model, l.Vars, l.BudgetUSD = o.model, o.vars, o.budget
	if err := launch.ConfineScript(l.Dir, o.model); err != nil {
		return started, env, kindAgent.problem("name a file of the agents directory", "%v", err).at("/model")
	}
	if o.spec != nil {
		name, text := sentFile(o.spec)
		started, env, err = launch.Sent(name, text, o.input, l)
		return started, env, cannotStart(err)
	}
	path, err := s.agents.find(o.agent)
	if err != nil {
		return started, env, err
	}
	started, env, err = launch.Agent(path, o.input, l)
	return started, env, cannotStart(err)
}

// cannotStart is the problem of a launch that failed: all that can be wrong there
// is the file or what it names.
func cannotStart(err error) error {
	if _, ok := errors.AsType[spec.Errors](err); ok || err == nil {
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
