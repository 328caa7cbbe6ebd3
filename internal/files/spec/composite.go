package spec

import (
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/expr"
)

// Composite makes an agent file a team: other agents do the work, and the file sets
// their order.
type Composite struct {
	Strategy   string     `yaml:"strategy,omitempty" oneof:"sequential parallel debate iterative"`
	Subagents  []Subagent `yaml:"subagents,omitempty"`
	Aggregator string     `yaml:"aggregator,omitempty"`
	MaxRounds  *int       `yaml:"max_rounds,omitempty"`
	Terminate  string     `yaml:"terminate,omitempty"`
}

// Subagent is a member of a team: an agent file, by the name of one beside the team's
// or by its path.
type Subagent struct {
	Agent string `yaml:"agent,omitempty"`
	File  string `yaml:"file,omitempty"`
	As    string `yaml:"as,omitempty"`
}

// Spawn restricts which agents a file may start.
type Spawn struct {
	Allow Names `yaml:"allow,omitempty"`
}

// Termination ends a team early.
type Termination struct {
	MaxTurns    *int     `yaml:"max_turns,omitempty"`
	MaxUSD      *float64 `yaml:"max_usd,omitempty" none:"yes"`
	TextMention string   `yaml:"text_mention,omitempty"`
}

// strategy describes which settings a team's strategy has.
type strategy struct {
	aggregates, mustAggregate bool
	// rounds reports that the members speak repeatedly.
	rounds bool
	// mention reports that a text can end it before all have spoken.
	mention bool
}

func strategies() map[string]strategy {
	return map[string]strategy{
		"sequential": {mention: true},
		"parallel":   {aggregates: true},
		"debate":     {aggregates: true, mustAggregate: true, rounds: true, mention: true},
		"iterative":  {rounds: true, mention: true},
	}
}

// beside returns the keys of an agent file that a team may have.
func beside() []string {
	return []string{"apiVersion", "kind", "identity", "model_policy", "prompt", "budgets", "composite", "spawn", "termination"}
}

var StepID = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,63}$`)

// fileExt is the extension of the file for an agent's name.
const fileExt = ".yaml"

// path returns the member's file, relative to the team's.
func (s Subagent) path() string {
	if s.File != "" {
		return s.File
	}
	return s.Agent + fileExt
}

// Name returns the member's name in the team.
func (s Subagent) Name() string {
	switch {
	case s.As != "":
		return s.As
	case s.Agent != "":
		return s.Agent
	}
	return agentName(s.File)
}

// PathIn resolves a path that a file in a directory names.
func PathIn(dir, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

// agentName returns the name of an agent by its file, which spawn.allow uses.
func agentName(file string) string {
	base := filepath.Base(file)
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// aggregator returns the last speaker: one of the members, or an agent by its name.
func (c *Composite) aggregator() (s Subagent, there bool) {
	for _, member := range c.Subagents {
		if member.Name() == c.Aggregator {
			return member, c.Aggregator != ""
		}
	}
	return Subagent{Agent: c.Aggregator}, c.Aggregator != ""
}

// members returns the members without the aggregator.
func (c *Composite) members() []Subagent {
	return slices.DeleteFunc(slices.Clone(c.Subagents), func(s Subagent) bool { return c.Aggregator != "" && s.Name() == c.Aggregator })
}

// Offers returns the agent files that a run of the file may start.
func (a *Agent) Offers() []AgentTool {
	switch {
	case a.agents != nil:
		return a.agents
	case a.Loops():
		return a.loopAgents()
	case a.Composite == nil:
		return a.Tools.Agents
	}
	all := a.Composite.members()
	if last, there := a.Composite.aggregator(); there {
		all = append(all, last)
	}
	team := make([]AgentTool, len(all))
	for i, s := range all {
		team[i] = AgentTool{Name: s.Name(), Description: s.Name(), File: s.path()}
	}
	return team
}

// CapUSD returns the cost limit of the file, nil if it sets none.
func (a *Agent) CapUSD() *float64 {
	if a.Termination != nil && a.Termination.MaxUSD != nil {
		return a.Termination.MaxUSD
	}
	return a.ModelPolicy.Budget.USDPerRun
}

// validateTeam checks a team.
func (a *Agent) validateTeam(r *decode.Report, o Options) {
	a.validateSpawn(r)
	switch {
	case a.Composite == nil:
		if a.Termination != nil {
			r.At("termination", "composite beside it, or iteration and budgets for one agent", "ends a team, and there is none")
		}
		return
	case a.Iteration != nil || r.Reported("composite"):
		return // the rest is not checked
	}
	a.refuseBeside(r)
	c := a.Composite
	s, known := strategies()[c.Strategy]
	if c.Strategy == "" {
		decode.Missing(r, "composite.strategy", "one of sequential, parallel, debate, iterative")
	}
	c.validateMembers(r, a, o)
	if !known {
		return
	}
	refuse := func(given, may bool, key string) {
		if given && !may {
			r.At("composite."+key, "a file without it", "a %s team does not have it", c.Strategy)
		}
	}
	refuse(c.Aggregator != "", s.aggregates, "aggregator")
	refuse(c.MaxRounds != nil, s.rounds, "max_rounds")
	refuse(c.Terminate != "", s.rounds, "terminate")
	decode.NotEmpty(r, "composite.aggregator", c.Aggregator)
	decode.NotEmpty(r, "composite.terminate", c.Terminate)
	decode.Within(r, "composite.max_rounds", c.MaxRounds, 1, 1_000_000)
	if s.rounds && c.MaxRounds == nil {
		decode.Missing(r, "composite.max_rounds", "how many rounds there may be")
	}
	if s.mustAggregate && c.Aggregator == "" && !r.Has("composite.aggregator") {
		decode.Missing(r, "composite.aggregator", "who sums the debate up")
	}
	if c.Terminate != "" && s.rounds {
		CheckExpression(r, "composite.terminate", c.Terminate, expr.Scope{Place: expr.Round})
	}
	a.validateTermination(r, s)
}

// refuseBeside reports the keys that only an agent has which calls a model itself.
func (a *Agent) refuseBeside(r *decode.Report) {
	v := reflect.ValueOf(a).Elem()
	fields := decode.FieldsOf(v.Type())
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		f := v.Type().FieldByIndex(fields[key])
		if slices.Contains(beside(), key) || f.Tag.Get("unbuilt") != "" {
			continue
		}
		if key == "tools" && a.APIVersion == VersionAldo && reflect.DeepEqual(a.Tools, Tools{Allow: Names{}}) {
			continue // ALDO's team files have it
		}
		if !v.FieldByIndex(fields[key]).IsZero() || r.Has(key) && !r.Reported(key) {
			r.At(key, "a file without it", "a team does not have it: it calls no model itself, its subagents do")
		}
	}
	for key, given := range map[string]bool{
		"model_policy.primary": a.ModelPolicy.Primary != Model{}, "prompt.system": a.Prompt.System != "", "prompt.system_file": a.Prompt.SystemFile != "",
	} {
		if given {
			r.Warn(key, "has no effect: a team calls no model itself, its subagents do")
		}
	}
}

func (c *Composite) validateMembers(r *decode.Report, a *Agent, o Options) {
	if len(c.members()) == 0 && !r.Reported("composite.subagents") {
		decode.Missing(r, "composite.subagents", "who does the work, each as {agent: NAME} or {file: PATH}")
	}
	names := map[string]bool{}
	for i, s := range c.Subagents {
		path := fmt.Sprintf("composite.subagents[%d]", i)
		key := path + ".as"
		switch {
		case s.As == "" && s.Agent != "":
			key = path + ".agent"
		case s.As == "":
			key = path + ".file"
		}
		switch name := s.Name(); {
		case (s.Agent == "") == (s.File == "") && !r.Reported(path):
			r.At(path, "agent: NAME or file: PATH, one of the two", "says %s", map[bool]string{true: "none", false: "both"}[s.File == ""])
			continue
		case !StepID.MatchString(name):
			r.At(key, "a small letter, then up to 63 small letters, digits, _ and -; as: gives a file another name", "%q is no name of a subagent", name)
		case name == roundsID:
			r.At(key, "another name", "%s is what the team calls its rounds", roundsID)
		case names[name]:
			r.At(key, "each name once; as: gives a file another one", "%q is given twice", name)
		}
		names[s.Name()] = true
		a.checkMember(r, key, s, o)
	}
	if last, there := c.aggregator(); there && !names[last.Name()] {
		if !StepID.MatchString(c.Aggregator) || c.Aggregator == roundsID {
			r.At("composite.aggregator", "the name of a subagent, or of an agent file beside this one", "%q is no name", c.Aggregator)
			return
		}
		a.checkMember(r, "composite.aggregator", last, o)
	}
}

// checkMember checks the file of a member.
func (a *Agent) checkMember(r *decode.Report, path string, s Subagent, o Options) {
	if strings.ContainsAny(s.Agent, `/\`) {
		r.At(path, "a name; file: takes a path", "%q is a path", s.Agent)
		return
	}
	a.maySpawn(r, path, s.path())
	if a.File != "" && filepath.Join(a.Dir, s.path()) == filepath.Join(a.Dir, a.File) {
		r.At(path, "another agent", "is the team itself")
		return
	}
	if o.CheckAgent == nil {
		return
	}
	if err := o.CheckAgent(AgentTool{File: s.path()}.Source(a.Dir)); err != nil {
		r.At(path, "an agent file, relative to this one", "%v", err)
	}
}

// validateSpawn checks the offered agents against the list of allowed ones.
func (a *Agent) validateSpawn(r *decode.Report) {
	for i, t := range a.Tools.Agents {
		a.maySpawn(r, fmt.Sprintf("tools.agents[%d].file", i), t.File)
	}
}

// maySpawn reports an agent file that is not on the list of allowed ones.
func (a *Agent) maySpawn(r *decode.Report, path, file string) {
	if a.Spawn == nil || a.Spawn.Allow == nil || file == "" {
		return
	}
	if name := agentName(file); !slices.Contains(a.Spawn.Allow, name) {
		r.At(path, "an agent of spawn.allow", "%s may not be started: spawn.allow does not name it", name)
	}
}

func (a *Agent) validateTermination(r *decode.Report, s strategy) {
	t := a.Termination
	if t == nil {
		return
	}
	c, turns := a.Composite, len(a.Composite.members())
	if c.Aggregator != "" {
		turns++
	}
	const path = "termination."
	decode.Within(r, path+"max_turns", t.MaxTurns, 1, 1_000_000)
	if t.MaxTurns != nil && *t.MaxTurns > 0 && *t.MaxTurns < turns {
		r.At(path+"max_turns", fmt.Sprintf("at least %d", turns), "is %d, and the team takes %d turns when each of it has one", *t.MaxTurns, turns)
	}
	decode.Money(r, path+"max_usd", t.MaxUSD)
	if t.MaxUSD != nil && a.ModelPolicy.Budget.USDPerRun != nil {
		r.At(path+"max_usd", "max_usd or model_policy.budget."+budget.CostPerRun+", one of the two", "both are given")
	}
	decode.NotEmpty(r, path+"text_mention", t.TextMention)
	if t.TextMention != "" && !s.mention {
		r.At(path+"text_mention", "a team whose members take turns", "the members of a %s team all speak at once, so nothing is left to end", c.Strategy)
	}
}
