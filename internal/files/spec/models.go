package spec

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/internal/files/decode"
)

func (p *ModelPolicy) validate(r *decode.Report, a *Agent, o Options) {
	role, rolePath := a.chosenRole(r)
	p.model(r, a, "model_policy.primary", p.Primary, o)
	for i, m := range p.Fallbacks {
		path := fmt.Sprintf("model_policy.fallbacks[%d]", i)
		if m == (Model{}) {
			decode.Missing(r, path+".model", "provider/model")
			continue
		}
		p.model(r, a, path, m, o)
	}
	p.model(r, a, "model_policy.roles.architect", p.Roles.Architect, o)
	p.model(r, a, "model_policy.roles.editor", p.Roles.Editor, o)
	p.model(r, a, "model_policy.roles.subagent", p.Roles.Subagent, o)
	if m, known := p.Roles.of(role); known && m == (Model{}) && o.Roles[role] != "" {
		a.byRole = o.Roles[role]
		p.check(r, a, rolePath, a.byRole, o)
	} else if known && m == (Model{}) {
		r.At(rolePath, "a role with a model in model_policy.roles", "%q has no model there", role)
	}
	if len(a.Chain()) == 0 && o.Model == "" && !r.Has("model_policy.primary") && a.Composite == nil && (a.Loop == nil || a.Loop.Runner == nil) {
		r.Warn("model_policy.primary", "the file names no model, so it runs only with --model")
	}
	decode.Within(r, "model_policy.decoding.temperature", p.Decoding.Temperature, 0, 2)
	decode.Within(r, "model_policy.decoding.max_tokens", p.Decoding.MaxTokens, 1, 10_000_000)
	decode.Money(r, "model_policy.budget."+budget.CostPerRun, p.Budget.USDPerRun)
}

// chosenRole returns the file's role and its path.
func (a *Agent) chosenRole(r *decode.Report) (role, path string) {
	if a.Role != "" && a.ModelPolicy.Role != "" {
		r.At("role", "role or model_policy.role", "both are given")
	}
	if a.ModelPolicy.Role != "" || r.Has("model_policy.role") {
		return a.ModelPolicy.Role, "model_policy.role"
	}
	return a.Role, "role"
}

func (p *ModelPolicy) model(r *decode.Report, a *Agent, path string, m Model, o Options) {
	provider, name, ok := strings.Cut(m.Model, "/")
	switch {
	case !o.Confined(r, path+".model", m.Model):
	case o.Model != "":
	case m.Model != "" && m.CapabilityClass != "":
		r.At(path+".capability_class", "model or capability_class", "both are given")
	case m.CapabilityClass != "":
		p.class(r, a, path+".capability_class", m.CapabilityClass, o)
	case m.Model == "" && r.Has(path):
		decode.Missing(r, path+".model", "provider/model, for example anthropic/claude-sonnet-4-5")
	case m.Model != "" && (!ok || provider == "" || name == ""):
		r.At(path+".model", "provider/model, for example anthropic/claude-sonnet-4-5", "is %q", m.Model)
	case m.Model != "":
		p.check(r, a, path+".model", m.Model, o)
	}
}

// class resolves a capability class.
func (p *ModelPolicy) class(r *decode.Report, a *Agent, path, class string, o Options) {
	name, known := o.Classes[class]
	if !known {
		expected := "model: provider/model, or a class of the config file's classes"
		if len(o.Classes) > 0 {
			expected = "one of " + strings.Join(slices.Sorted(maps.Keys(o.Classes)), ", ")
		}
		r.At(path, expected, "no config file defines the class %q", class)
		return
	}
	if a.byClass == nil {
		a.byClass = map[string]string{}
	}
	a.byClass[class] = name
	p.check(r, a, path, name, o)
}

func (p *ModelPolicy) check(r *decode.Report, a *Agent, path, name string, o Options) {
	if o.CheckModel == nil || o.Model != "" {
		return
	}
	if err := o.CheckModel(a.Dir, name); err != nil {
		r.At(path, "a model that can be called", "%v", err)
		return
	}
	if setting := a.moneyCap(); setting != "" && o.Unpriced != nil && o.Unpriced(a.Dir, name) {
		r.Warn(path, "no price is known for %s, so a run is refused under %s; set its price in the config file, or use --no-budget", name, setting)
	}
}

// moneyCap returns the name of the file's cost limit, or "".
func (a *Agent) moneyCap() string {
	switch usd, total := a.ModelPolicy.Budget.USDPerRun, a.Budgets.MaxTotalCost; {
	case usd != nil && *usd > 0:
		return "model_policy.budget." + budget.CostPerRun
	case total > 0:
		return "budgets." + budget.TotalCost
	}
	return ""
}

func (roles Roles) of(role string) (m Model, known bool) {
	switch role {
	case "architect":
		return roles.Architect, true
	case "editor":
		return roles.Editor, true
	case "subagent":
		return roles.Subagent, true
	}
	return Model{}, false
}

// Chain lists the names of the models to use: the primary one, its fallbacks, then the
// model of the file's own role and the other roles', each once. Without a primary model
// the role's own comes first.
func (a *Agent) Chain() []string {
	p := a.ModelPolicy
	models := append([]Model{p.Primary}, p.Fallbacks...)
	role := a.Role
	if p.Role != "" {
		role = p.Role
	}
	own, _ := p.Roles.of(role)
	if own == (Model{}) {
		own.Model = a.byRole
	}
	if p.Primary == (Model{}) {
		models[0] = own
	}
	models = append(models, own, p.Roles.Architect, p.Roles.Editor, p.Roles.Subagent)
	var chain []string
	for _, m := range models {
		if name := cmp.Or(m.Model, a.byClass[m.CapabilityClass]); name != "" && !slices.Contains(chain, name) {
			chain = append(chain, name)
		}
	}
	return chain
}
