package spec

import (
	"fmt"
	"maps"
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/files/decode"
)

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
