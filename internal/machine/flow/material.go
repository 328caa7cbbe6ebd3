package flow

import (
	"encoding/json"
	"slices"

	"github.com/pawlrun/pawl/event"
)

// material returns the parts of a step's task, including the results of the steps that
// it depends on and the results from each enclosing loop and plan.
func (m *Machine) material(n *node) Material {
	t := m.around(n)
	switch s := n.step(); {
	case s.Agent != nil:
		t.Files = s.Agent.Files
		m.instruct(&t, n, s.Agent.Instructions)
	case s.Run != nil:
		m.instruct(&t, n, s.Run.Instructions)
	}
	t.Inbox = n.mail.started()
	return t
}

// around returns the part of the task that all steps in a scope share.
func (m *Machine) around(n *node) Material {
	t := Material{Fence: m.fence}
	var passes []Section
	for at := n; at != nil; at = at.in.in {
		t.Sections = append(at.dependencies(), t.Sections...)
		if at.in.in == nil && (len(at.vertex.deps) == 0 || m.cfg.Plan.Team) {
			t.Task = m.task
		}
		p := at.in.pass
		if p == nil {
			continue
		}
		if at != n || !n.in.logged() { // the log contains the earlier results
			passes = append(p.before(), passes...)
		}
		switch {
		case p.of.plan.Items != nil && t.Item == nil:
			t.Item, t.Index = p.item, p.index
		case p.of.plan.Items == nil && t.Iteration == 0:
			t.Iteration, t.Of = p.index+1, p.of.most()
		}
	}
	if own := n.dependencies(); len(own) > 0 { // newer than the previous pass
		outer := t.Sections[:len(t.Sections)-len(own)]
		t.Sections = append(append(append([]Section(nil), outer...), passes...), own...)
	} else {
		t.Sections = append(t.Sections, passes...)
	}
	return t
}

// dependencies returns the outputs of a step's direct dependencies.
func (n *node) dependencies() (all []Section) {
	for _, i := range n.vertex.deps {
		dep := n.in.steps[i]
		said := dep.section("Step " + dep.step().ID)
		if dep.items != nil {
			said.Content, said.Result, said.Full = dep.items.section(), nil, true
		}
		all = append(all, said)
	}
	return all
}

func (n *node) section(title string) Section {
	return Section{Title: title, From: n.id, Status: n.status, Content: n.content, Result: n.result, Full: n.whole}
}

// sections returns the output of each step of a pass.
func (s *scope) sections() (all []Section) {
	for _, n := range s.steps {
		if n.status == event.StepStatusCompleted {
			all = append(all, n.section("Previous round: "+n.step().ID))
		}
	}
	return all
}

// before returns the output of the previous pass, and its judge's verdict.
func (p *pass) before() []Section {
	if p.of.plan.Items != nil || p.index == 0 || p.of.plan.Carry.None {
		return nil
	}
	end, id := p.of.passes[p.index-1], p.of.of.id
	all := slices.Clone(end.said)
	if len(all) == 0 {
		all = []Section{{Title: "Previous iteration", From: id, Status: end.status, Content: end.content, Result: end.result}}
		if end.error != nil {
			all[0].Reason = end.error.Message
		}
	}
	all = append(all, end.checks...)
	if j := end.judged; j != nil {
		all = append(all, Section{Title: "Judge of the previous iteration", From: id + ".judge", Content: j.content, Reason: j.reason, Result: j.result})
	}
	return all
}

// evidence returns the part of a judge's task that describes the pass that just ended.
func (m *Machine) evidence(l *loop, s *scope) Material {
	t := m.around(l.of)
	t.Item, t.Iteration, t.Of = nil, s.pass.index+1, l.most()
	if l.goal != nil {
		t.Task = l.goal.Brief(m.fence)
	}
	if a := s.steps[0].step().Agent; a != nil && l.plan.Single {
		m.instruct(&t, s.steps[0], a.Instructions)
	}
	if before := s.pass.before(); len(before) > 1 {
		t.Sections = append(t.Sections, before[1])
	}
	t.Sections = append(t.Sections, l.last().checks...)
	var prose []Section
	for _, n := range s.steps {
		said := n.section("Step " + n.step().ID)
		if len(n.result) > 0 {
			t.Sections = append(t.Sections, Section{Title: "Result of step " + n.step().ID, From: n.id, Status: n.status, Result: n.result})
			said.Result = nil
		}
		prose = append(prose, said)
	}
	t.Sections = append(t.Sections, prose...)
	return t
}

// takesIn returns the combined taint of everything in a step's task.
func (m *Machine) takesIn(n *node) event.Taint {
	taint := m.given
	for at := n; at != nil; at = at.in.in {
		for _, i := range at.vertex.deps {
			taint = taint.With(at.in.steps[i].taint)
		}
		if p := at.in.pass; p != nil {
			taint = taint.With(p.of.taint)
		}
	}
	return taint
}

// argument returns the argument of a step's function.
func (m *Machine) argument(n *node) json.RawMessage {
	v := n.in.surroundings()
	v.Input = m.task
	for at := n; at != nil; at = at.in.in {
		for _, i := range at.vertex.deps {
			v.set(at.in.steps[i])
		}
	}
	return encoded(v)
}
