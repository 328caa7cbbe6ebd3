package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/kinds"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/internal/view"
)

// fileDetail is what a client needs to start a run of a file.
type fileDetail struct {
	runnable
	// Key is the key of a start that names the file.
	Key string `json:"key"`
	// Vars are the variables that a run needs; TaskVars are those of the file's own
	// task, which only a run without an input needs.
	Vars          []string `json:"vars,omitempty"`
	TaskVars      []string `json:"taskVars,omitempty"`
	InputOptional bool     `json:"inputOptional"`
	// ReadOnly reports that a run can change nothing.
	ReadOnly bool `json:"readOnly"`
	launch.Shape
	// Problems are those that 'pawl check' reports, with their places; Warnings prevent
	// nothing.
	Problems []decode.Problem `json:"problems"`
	Warnings []decode.Problem `json:"warnings"`
}

// showFile shows a file that can be run by name.
func (s *Server) showFile(a *apiRequest[none, none]) (fileDetail, error) {
	d, f, err := s.fileNamed(a.PathValue("name"))
	if err != nil {
		return d, err
	}
	d.Problems, d.Warnings = []decode.Problem{}, []decode.Problem{}
	warnings, err := f.Check(s.launch)
	if err != nil {
		d.Problem = control.Plain(err)
		var problems decode.Errors
		if errors.As(err, &problems) {
			d.Problems = append(d.Problems, problems...)
		}
		return d, nil
	}
	d.Warnings = append(d.Warnings, warnings...)
	signature, err := f.Signature(s.launch)
	if err != nil {
		d.Problem = control.Plain(err)
		return d, nil
	}
	d.Vars, d.TaskVars, d.InputOptional, d.ReadOnly, d.Shape = signature.Vars, signature.TaskVars, signature.InputOptional, signature.ReadOnly, signature.Shape
	return d, nil
}

// fileNamed finds a file of either family by its name.
func (s *Server) fileNamed(name string) (d fileDetail, f kinds.File, err error) {
	agents, workflows := families()
	for _, family := range []family{agents, workflows} {
		all, err := s.files.list(family)
		if err != nil {
			return d, f, err
		}
		i := slices.IndexFunc(all, func(r runnable) bool { return r.Name == name })
		if i < 0 {
			continue
		}
		f, err = s.files.find(family, name)
		return fileDetail{runnable: all[i], Key: family.key}, f, err
	}
	return d, f, kindNotFound.problem("list the files at "+agents.path+" and "+workflows.path, "there is no file %q", name)
}

// drawnPlan is a plan, its drawings as 'pawl check --graph' prints them, and its steps as
// nodes of a graph.
type drawnPlan struct {
	Tree    string      `json:"tree"`
	Mermaid string      `json:"mermaid"`
	Plan    plan.Plan   `json:"plan"`
	Nodes   []view.Node `json:"nodes"`
}

// showPlan gives the steps of a file.
func (s *Server) showPlan(a *apiRequest[none, none]) (drawnPlan, error) {
	_, f, err := s.fileNamed(a.PathValue("name"))
	if err != nil {
		return drawnPlan{}, err
	}
	p, err := f.Plan(s.launch)
	if errors.Is(err, kinds.ErrCannot) {
		return drawnPlan{}, kindNotFound.problem("look at /v1/files/"+a.PathValue("name"), "%s", control.Plain(err))
	}
	if err != nil {
		return drawnPlan{}, err
	}
	return drawnPlan{Tree: p.Tree(), Mermaid: p.Mermaid(), Plan: p, Nodes: new(view.View).Graph(&p, nil, nil)}, nil
}

// graphQuery selects what a graph shows.
type graphQuery struct {
	At string `json:"at,omitempty" jsonschema:"passes of loops, such as each[2] or work.1, between spaces; without them each loop shows a failed item, or else its last pass"`
}

// drawnRun is the plan of a run as a graph.
type drawnRun struct {
	Tree  string      `json:"tree"`
	Nodes []view.Node `json:"nodes"`
}

// showGraph gives the steps of a run with what it did of them; a run of one agent has
// none.
func (s *Server) showGraph(a *apiRequest[graphQuery, none]) (drawnRun, error) {
	drawn := drawnRun{Nodes: []view.Node{}}
	row, err := s.find(a.Request)
	if err != nil {
		return drawn, err
	}
	started, err := drive.At[event.RunStarted](a.Context(), s.store, row.ID, 0)
	if err != nil || started.Machine != flow.Version {
		return drawn, err
	}
	var cfg flow.Config
	if err := json.Unmarshal(started.Config, &cfg); err != nil {
		return drawn, fmt.Errorf("server: the plan of run %s: %w", row.ID, err)
	}
	for _, id := range strings.Fields(a.query.At) {
		if loop, _, is := view.PassOf(id); !is || !cfg.Plan.Has(loop) {
			return drawn, kindQuery.problem("name passes of its loops, such as each[2] or work.1", "at names %q, which is no pass of a loop of run %s", id, row.ID)
		}
	}
	judged, evaluated := newPassFold(), []event.ConditionEvaluated{}
	for e, err := range drive.AsStored(a.Context(), s.store, row.ID, judging()...) {
		if err != nil {
			return drawn, err
		}
		if d, is := e.Data.(event.ConditionEvaluated); is {
			evaluated = append(evaluated, d)
		}
		judged.add(e.Data)
	}
	f := s.views.Of(row.ID)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.read(a.Context(), s.store, row.ID); err != nil {
		return drawn, err
	}
	drawn.Tree, drawn.Nodes = cfg.Plan.Tree(), f.Graph(&cfg.Plan, evaluated, strings.Fields(a.query.At))
	for i := range drawn.Nodes {
		if n := &drawn.Nodes[i]; n.Loop != nil {
			n.Loop.Verdicts = judged.verdictsOf(n.ID, n.Loop.At+1)
		}
	}
	return drawn, nil
}
