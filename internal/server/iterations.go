package server

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/internal/view"
)

// longestAnswer is the most bytes of an iteration's answer.
const longestAnswer = 64 << 10

// pass is an iteration of a loop with all that judged it.
type pass struct {
	Step          string `json:"step,omitempty"`
	Iteration     int    `json:"iteration"`
	MaxIterations int    `json:"maxIterations,omitempty"`
	// Run is the run that did it, and Exit why that ended, empty while it goes on.
	Run    string       `json:"run,omitempty"`
	Exit   event.Reason `json:"exit,omitempty"`
	Output string       `json:"output"`
	// Cut reports that Output is only its beginning.
	Cut bool `json:"cut,omitempty"`
	// Tree identifies the content of the workspace at its end.
	Tree   string         `json:"tree,omitempty"`
	Judged []view.Verdict `json:"judged"`
	// Learning is its entry in the log, and Patterns the new head of the log.
	Learning string `json:"learning,omitempty"`
	Patterns string `json:"patterns,omitempty"`
	// Checkpoints are those of a goal after it.
	Checkpoints []event.Checkpoint `json:"checkpoints,omitempty"`
}

// passes are the iterations of all loops of a run, and the objective of a goal.
type passes struct {
	Objective string `json:"objective,omitempty"`
	Items     []pass `json:"items"`
}

// showIterations lists the iterations of the loops of a run.
func (s *Server) showIterations(a *apiRequest[none, none]) (passes, error) {
	row, err := s.find(a.Request)
	if err != nil {
		return passes{}, err
	}
	f := newPassFold()
	for read, err := range drive.Events(a.Context(), s.store, row.ID, 0) {
		if err != nil {
			return passes{}, err
		}
		f.add(read.Event.Data)
	}
	return f.passes, nil
}

// passFold folds the events of a run into its iterations.
type passFold struct {
	passes
	// index holds the places of the iterations, by loop and number.
	index    map[passKey]int
	commands map[string][]string
	reviews  map[string]event.ReviewRequested
}

type passKey struct {
	step   string
	number int
}

func newPassFold() *passFold {
	return &passFold{passes: passes{Items: []pass{}}, index: map[passKey]int{}, commands: map[string][]string{}, reviews: map[string]event.ReviewRequested{}}
}

// judging returns the types of the events that begin, end or judge an iteration.
func judging() []event.Type {
	var types []event.Type
	for _, d := range []event.Data{
		event.ChildStarted{}, event.Iteration{}, event.CommandStarted{}, event.CommandFinished{}, event.ConditionEvaluated{}, event.JudgeVerdict{},
		event.ReviewRequested{}, event.ReviewResolved{},
	} {
		types = append(types, d.EventType())
	}
	return types
}

// at returns an iteration of a loop by its number, from 1, and creates it if necessary.
func (f *passFold) at(step string, number int) *pass {
	i, known := f.index[passKey{step, number}]
	if !known {
		i = len(f.Items)
		f.index[passKey{step, number}] = i
		f.Items = append(f.Items, pass{Step: step, Iteration: number, Judged: []view.Verdict{}})
	}
	return &f.Items[i]
}

// verdictsOf returns what was decided after an iteration.
func (f *passFold) verdictsOf(step string, number int) []view.Verdict {
	if i, known := f.index[passKey{step, number}]; known {
		return f.Items[i].Judged
	}
	return nil
}

// last returns the last iteration of a loop, nil if it has none.
func (f *passFold) last(step string) *pass {
	for i := range slices.Backward(f.Items) {
		if f.Items[i].Step == step {
			return &f.Items[i]
		}
	}
	return nil
}

func (f *passFold) add(data event.Data) {
	switch d := data.(type) {
	case event.RunStarted:
		f.Objective = objectiveOf(d)
	case event.ChildStarted:
		loop, index, found := cutLast(d.Step)
		if n, err := strconv.Atoi(index); found && err == nil && d.BeginsStep() {
			f.at(loop, n+1).Run = d.Child
		}
	case event.Iteration:
		p := f.at(d.Step, d.Number)
		p.MaxIterations, p.Exit, p.Tree = d.MaxIterations, d.Exit, d.Tree
		if d.Child != "" {
			p.Run = d.Child
		}
		if p.Output = d.Output; len(p.Output) > longestAnswer {
			p.Output, p.Cut = strings.ToValidUTF8(p.Output[:longestAnswer], ""), true
		}
	case event.Progress:
		p := f.at(d.Step, d.Number)
		p.Learning, p.Patterns = d.Learning, d.Patterns
	case event.Checkpoint:
		if p := f.last(d.Step); p != nil {
			p.Checkpoints = append(p.Checkpoints, d)
		}
	default:
		f.judge(data)
	}
}

// judge adds a verdict of an iteration.
func (f *passFold) judge(data event.Data) {
	var p *pass
	j := view.Verdict{Said: view.Judged(data, f.commands)}
	holds := false
	switch d := data.(type) {
	case event.CommandStarted:
		f.commands[d.ID] = d.Argv
		return
	case event.CommandFinished:
		if view.DoesStep(d.ID) {
			return
		}
		p, j.By, holds = f.last(d.Step), "command", d.ExitCode != nil && *d.ExitCode == 0
		j.Holds = &holds
	case event.ConditionEvaluated:
		p, j.By = f.last(d.Step), "expression"
		if d.Error == "" && json.Unmarshal(d.Value, &holds) == nil {
			j.Holds = &holds
		}
	case event.JudgeVerdict:
		p, j.By, j.Run, holds = f.at(d.Step, d.Number), "judge", d.Child, d.Verdict == event.VerdictDone
		j.Holds = &holds
	case event.ReviewRequested:
		f.reviews[d.LoopID] = d
		return
	case event.ReviewResolved:
		asked := f.reviews[d.LoopID]
		p, j.By, holds = f.at(asked.Step, asked.Number), "review", d.Kind == event.ApprovalApproved
		j.Holds = &holds
	}
	if p != nil && j.Said != "" {
		p.Judged = append(p.Judged, j)
	}
}

// cutLast splits the id of a pass into the loop's and the index.
func cutLast(id string) (loop, index string, found bool) {
	i := strings.LastIndexByte(id, '.')
	if i < 0 {
		return id, "", false
	}
	return id[:i], id[i+1:], true
}

// objectiveOf returns the objective of a goal.
func objectiveOf(d event.RunStarted) string {
	var cfg flow.Config
	if d.Machine != flow.Version || json.Unmarshal(d.Config, &cfg) != nil {
		return ""
	}
	for i := range cfg.Plan.Steps {
		if l := cfg.Plan.Steps[i].Loop; l != nil && l.Goal != nil {
			return l.Goal.Objective
		}
	}
	return ""
}
