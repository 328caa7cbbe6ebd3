package view

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/llm"
)

// Node is a step of a plan, at one pass of each loop around it.
type Node struct {
	// ID is the step's id in the run, and Step its name in its graph. Parent is the node
	// that contains it, and After are the nodes on which it depends.
	ID     string   `json:"id"`
	Step   string   `json:"step"`
	Parent string   `json:"parent,omitempty"`
	After  []string `json:"after,omitempty"`
	// About is what performs it, its loop and its condition, in words.
	About []string `json:"about,omitempty"`
	StepWork
	Condition *Condition `json:"condition,omitempty"`
	Loop      *Ring      `json:"loop,omitempty"`
}

// StepWork is what a run did of a step; it is empty before the step begins.
type StepWork struct {
	State State  `json:"state,omitempty"`
	Line  string `json:"line,omitempty"`
	// Run is the run that performs the step, and Entry its entry.
	Run     string    `json:"run,omitempty"`
	Entry   string    `json:"entry,omitempty"`
	Seconds float64   `json:"seconds,omitempty"`
	Usage   llm.Usage `json:"usage,omitzero"`
	Cost    *llm.Cost `json:"cost,omitempty"`
}

// Condition is the condition of a step, with its result when there is one.
type Condition struct {
	Expression string          `json:"expression"`
	Value      json.RawMessage `json:"value,omitempty"`
	Error      string          `json:"error,omitempty"`
}

// Ring is the progress of a loop. Of is how many passes there are, or may be; 0 if that
// is not known yet.
type Ring struct {
	Items   bool `json:"items"`
	Of      int  `json:"of"`
	Passes  int  `json:"passes"`
	Done    int  `json:"done"`
	Failed  int  `json:"failed"`
	Running int  `json:"running"`
	// At is the pass that the nodes in the loop show, from 0.
	At int `json:"at"`
	// Verdicts are what was decided after that pass.
	Verdicts []Verdict `json:"verdicts,omitempty"`
}

// Verdict is a result about a pass: of a command, an expression, a judge or a person.
type Verdict struct {
	By    string `json:"by"`
	Said  string `json:"said"`
	Holds *bool  `json:"holds,omitempty"`
	Run   string `json:"run,omitempty"`
}

// Graph returns the steps of a plan as nodes, each before those that it contains. The
// view is that of the run, or an empty one. Of each loop the nodes show the pass that
// passes names, or else a failed item, or else the last pass.
func (v *View) Graph(p *plan.Plan, evaluated []event.ConditionEvaluated, passes []string) []Node {
	v.prepare()
	g := grapher{view: v, chosen: map[string]int{}, values: map[string]event.ConditionEvaluated{}, single: p.Refine}
	for _, id := range passes {
		if loop, n, is := PassOf(id); is {
			g.chosen[loop] = n
		}
	}
	for _, d := range evaluated {
		for _, of := range []string{"/condition", "/items"} {
			if strings.HasSuffix(d.ID, of) {
				g.values[d.Step+of] = d
			}
		}
	}
	g.add(p, "", "")
	return g.nodes
}

// PassOf returns the loop and the number, from 0, of the pass with an id.
func PassOf(id string) (loop string, number int, is bool) {
	loop = above(id)
	number, err := strconv.Atoi(strings.TrimSuffix(strings.TrimLeft(id[len(loop):], ".["), "]"))
	return loop, number, err == nil && loop != "" && number >= 0
}

type grapher struct {
	view   *View
	chosen map[string]int
	values map[string]event.ConditionEvaluated
	// single reports that the run is one loop, which has no entry.
	single bool
	nodes  []Node
}

// add adds the steps of a graph. Their ids in the run begin with prefix.
func (g *grapher) add(p *plan.Plan, prefix, parent string) {
	for i := range p.Steps {
		s := &p.Steps[i]
		n := Node{ID: prefix + s.ID, Step: s.ID, Parent: parent}
		for _, d := range s.DependsOn {
			n.After = append(n.After, prefix+d)
		}
		n.About = slices.DeleteFunc(s.About(), func(words string) bool { return strings.HasPrefix(words, "after ") })
		n.StepWork = g.work(n.ID)
		if s.Condition != "" {
			d := g.values[n.ID+"/condition"]
			n.Condition = &Condition{s.Condition, d.Value, d.Error}
		}
		if s.Loop == nil {
			g.nodes = append(g.nodes, n)
			if s.Plan != nil {
				g.add(s.Plan, n.ID+".", n.ID)
			}
			continue
		}
		n.Loop = g.ring(n.ID, s.Loop)
		if g.single && parent == "" {
			n.State, n.Usage, n.Cost = g.view.run.State, g.view.run.Usage, g.view.run.Cost
		}
		g.nodes = append(g.nodes, n)
		g.addPass(s.Loop, &n)
	}
}

// addPass adds the shown pass of a loop.
func (g *grapher) addPass(l *plan.Loop, loop *Node) {
	pass := passID(loop.ID, loop.Loop.At, loop.Loop.Items)
	if !l.Single {
		g.add(&l.Body, pass+".", loop.ID)
		return
	}
	name := "iteration "
	if loop.Loop.Items {
		name = "item "
	}
	g.nodes = append(g.nodes, Node{ID: pass, Step: name + strconv.Itoa(loop.Loop.At+1), Parent: loop.ID, StepWork: g.work(pass)})
}

func passID(loop string, n int, items bool) string {
	if items {
		return loop + "[" + strconv.Itoa(n) + "]"
	}
	return loop + "." + strconv.Itoa(n)
}

// work returns what the view has of a step.
func (g *grapher) work(id string) StepWork {
	n := g.view.steps[id]
	if n == nil {
		return StepWork{}
	}
	return StepWork{State: n.State, Line: n.Line, Run: n.Run, Entry: n.ID, Seconds: n.Seconds, Usage: n.Usage, Cost: n.Cost}
}

// ring counts the passes of a loop.
func (g *grapher) ring(id string, l *plan.Loop) *Ring {
	r := Ring{Items: l.Items != nil, Of: l.Max}
	if l.Items != nil {
		r.Of = len(l.Items.Static)
		var items []json.RawMessage
		if json.Unmarshal(g.values[id+"/items"].Value, &items) == nil && items != nil {
			r.Of = len(items)
		}
	}
	above := ""
	if n := g.view.steps[id]; n != nil {
		above = n.ID
	} else if !g.single {
		return &r
	}
	first := map[State]int{}
	for _, n := range g.view.Below(above) {
		_, pass, is := PassOf(n.Ref)
		if n.Kind != Iteration || !is {
			continue
		}
		r.Passes++
		switch n.State {
		case Done:
			r.Done++
		case Failed:
			r.Failed++
		case Running, Waiting:
			r.Running++
		}
		if at, known := first[n.State]; !known || pass < at {
			first[n.State] = pass
		}
		if !r.Items {
			r.At = max(r.At, pass)
		}
	}
	for _, s := range []State{Failed, Waiting, Running} {
		if at, is := first[s]; is && r.Items {
			r.At = at
			break
		}
	}
	if at, is := g.chosen[id]; is {
		r.At = at
	}
	return &r
}
