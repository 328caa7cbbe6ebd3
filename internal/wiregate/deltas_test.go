package wiregate

import (
	"strings"

	"github.com/pawlrun/pawl/llm"
)

// collected puts deltas together again, by the part that they belong to.
type collected struct {
	text  map[int]*strings.Builder
	kinds map[int]llm.DeltaKind
	empty int
}

func (c *collected) add(d llm.Delta) {
	if c.text == nil {
		c.text, c.kinds = map[int]*strings.Builder{}, map[int]llm.DeltaKind{}
	}
	if d.Kind == llm.DeltaReset {
		*c = collected{empty: c.empty}
		return
	}
	if d.Text == "" && d.Tool == "" {
		c.empty++
	}
	if c.text[d.Index] == nil {
		c.text[d.Index], c.kinds[d.Index] = &strings.Builder{}, d.Kind
	}
	c.text[d.Index].WriteString(d.Text)
}

// compare holds the deltas against the answer's parts: what was shown live is
// what is kept. Calls that broke off are shown and not kept, so they are not
// asked for.
func (c *collected) compare(resp *llm.Response) differences {
	var d differences
	if c.empty > 0 {
		d.addf("%d deltas are empty", c.empty)
	}
	if resp == nil {
		if len(c.text) > 0 {
			d.addf("%d parts were shown and nothing is kept", len(c.text))
		}
		return d
	}
	for i, p := range resp.Parts {
		var kind llm.DeltaKind
		var text string
		switch p := p.(type) {
		case llm.Text:
			kind, text = llm.DeltaText, p.Text
		case llm.Reasoning:
			kind, text = llm.DeltaReasoning, p.Text
		default:
			continue
		}
		switch shown := c.text[i]; {
		case text == "":
		case shown == nil:
			d.addf("part %d was never shown: %q", i, text)
		case c.kinds[i] != kind || shown.String() != text:
			d.addf("part %d was shown as %q and is %q", i, shown.String(), text)
		}
	}
	return d
}
