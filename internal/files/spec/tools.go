package spec

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/rules/policy"
)

func (t *Tools) validate(r *decode.Report, o Options) {
	if o.Tools != nil {
		o.Tools = append(slices.Clone(o.Tools), t.offered()...)
	}
	t.validateNames(r, o)
	for i, pattern := range t.ProtectedPaths {
		policy.Pattern(pattern).Check(reporting(r, fmt.Sprintf("tools.protected_paths[%d]", i)))
	}
	if t.Mode == "bypass" {
		r.Warn("tools.mode", "calls that would ask run unasked, but for what approvals, rules and protected paths say")
	}
	t.validateTaint(r, o)
	t.validateDeclarations(r, o)
	for i, rule := range t.Rules {
		rule.validate(r, fmt.Sprintf("tools.rules[%d]", i), t, o)
	}
	t.validateSecrets(r, o)
	if t.Permissions != nil {
		t.Permissions.validate(r, t)
	}
}

// validateNames reports settings of unknown tools.
func (t *Tools) validateNames(r *decode.Report, o Options) {
	for i, name := range t.Allow {
		path := fmt.Sprintf("tools.allow[%d]", i)
		if slices.Contains(t.Allow[:i], name) {
			r.At(path, "each tool once", "%q is given twice", name)
		} else {
			t.known(r, path, name, o)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Approvals)) {
		t.usable(r, decode.Join("tools.approvals", name), name, o)
	}
	for _, name := range slices.Sorted(maps.Keys(t.Timeouts)) {
		path := decode.Join("tools.timeouts", name)
		t.usable(r, path, name, o)
		seconds := float64(t.Timeouts[name])
		decode.Within(r, path, &seconds, 0.001, 86_400)
	}
}

// validateHosted checks the provider's own tools against every model that may be asked
// for them.
func (a *Agent) validateHosted(r *decode.Report, o Options) {
	models := a.Chain()
	if o.Model != "" {
		models = []string{o.Model}
	}
	for i, name := range a.Tools.Provider {
		path := fmt.Sprintf("tools.provider[%d]", i)
		if name == "" {
			r.At(path, "the provider's name of the tool", "is empty")
			continue
		}
		for _, model := range models {
			if o.CheckHosted == nil {
				break
			}
			ignored, err := o.CheckHosted(a.Dir, model, name)
			if err != nil {
				r.At(path, "a tool that the providers of all models of the file run", "%v", err)
				break
			}
			if ignored != "" {
				r.Warn(path, "%s", ignored)
			}
		}
	}
}

// known reports a tool that does not exist.
func (t *Tools) known(r *decode.Report, path, name string, o Options) bool {
	if o.Tools == nil || t.ofServer(name) || slices.Contains(o.Tools, name) {
		return true
	}
	if name == "" && r.Reported(path) { // a value of another type
		return false
	}
	message := strconv.Quote(name) + " is not a tool"
	if meant := decode.Closest(name, o.Tools); meant != "" {
		message += "; did you mean " + meant + "?"
	}
	r.At(path, "one of "+strings.Join(o.Tools, ", "), "%s", message)
	return false
}

// usable reports a tool that does not exist or that the file does not allow.
func (t *Tools) usable(r *decode.Report, path, name string, o Options) {
	if t.ofServer(name) {
		return // its tools are known when it is started
	}
	if t.known(r, path, name, o) && t.Allow != nil && !slices.Contains(t.Allow, name) && !slices.Contains(t.offered(), name) {
		r.At(path, "a tool of tools.allow", "%q is not in tools.allow", name)
	}
}

// Labels sets for each tool the labels of its results and whether its calls can send:
// any of untrusted, private and outgoing.
type Labels map[string][]string

// Of returns the labels in the file for a tool.
func (l Labels) Of(tool string) (event.Labels, bool) {
	list, ok := Named(l, tool)
	return event.Labels{
		Untrusted: slices.Contains(list, "untrusted"), Private: slices.Contains(list, "private"), Outgoing: slices.Contains(list, "outgoing"),
	}, ok
}

func (t *Tools) validateTaint(r *decode.Report, o Options) {
	if t.RuleOfTwo == "off" {
		r.Warn("tools.rule_of_two", "untrusted text, private data and outgoing calls may come together without an approval")
	}
	for i, name := range t.Provider {
		private := t.Allow == nil || len(t.Allow) > 0
		if private && t.RuleOfTwo != "off" && name != "" && !slices.Contains(t.MaySend, name) {
			r.Warn(fmt.Sprintf("tools.provider[%d]", i), "%s runs within the model's answer, where the rule of two cannot ask; "+
				"once untrusted text and private data have met it is withheld, unless tools.may_send names it", name)
		}
	}
	for i, name := range t.MaySend {
		if !slices.Contains(t.Provider, name) {
			t.usable(r, fmt.Sprintf("tools.may_send[%d]", i), name, o)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Labels)) {
		t.usable(r, decode.Join("tools.labels", name), name, o)
	}
}
