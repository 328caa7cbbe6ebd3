package cli

import (
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/models"
)

// barWidth is how many characters the largest cycle's bar has.
const barWidth = 20

// ink holds the characters of a bar's segments.
type ink struct{ cached, fresh, output string }

// inkFor uses ASCII if the output is no capable terminal, or if the owner prefers
// it.
func inkFor(s screen) ink {
	if s.colour {
		return ink{cached: "░", fresh: "▓", output: "█"}
	}
	return ink{cached: ".", fresh: "=", output: "#"}
}

// bar draws the tokens of a cycle, scaled to the largest cycle: input from the
// cache, fresh input, output. A value above zero is visible.
func (k ink) bar(u llm.Usage, largest int64) string {
	var b strings.Builder
	left := barWidth
	for _, segment := range []struct {
		ink    string
		tokens int64
	}{{k.cached, u.CacheRead}, {k.fresh, max(u.Input-u.CacheRead, 0)}, {k.output, u.Output}} {
		n := 0
		if segment.tokens > 0 && largest > 0 {
			n = min(max(int(segment.tokens*barWidth/largest), 1), left)
		}
		b.WriteString(strings.Repeat(segment.ink, n))
		left -= n
	}
	return b.String() + strings.Repeat(" ", left)
}

// partWidth is how many characters the bar of a part has.
const partWidth = 10

// part draws how much of a whole is used; "" if the whole is unknown.
func (k ink) part(n, of int) string {
	if k.output == "" || of <= 0 {
		return ""
	}
	full := min(n*partWidth/of, partWidth)
	return strings.Repeat(k.output, full) + strings.Repeat(k.cached, partWidth-full)
}

// legend explains the bars.
func (k ink) legend() string {
	return fmt.Sprintf("tokens    %s cached input  %s fresh input  %s output", k.cached, k.fresh, k.output)
}

// share returns how much of the model's window the cycle's last request filled.
func share(c *view.CycleLine) string {
	if c.Window <= 0 {
		return ""
	}
	return fmt.Sprintf("%3.0f %% of window", 100*c.WindowShare)
}

// windows fills in the windows of the cycles' models: those that the run has not pinned
// are looked up, each model once.
func windows(cycles []view.CycleLine) {
	known := map[string]int{}
	for i := range cycles {
		c := &cycles[i]
		if c.Window == 0 && c.Model != "" {
			n, asked := known[c.Model]
			if !asked {
				info, _ := new(models.Resolver).Lookup(c.Model)
				n, known[c.Model] = info.ContextWindow, info.ContextWindow
			}
			c.Window = int64(n)
		}
		if c.Window > 0 {
			c.WindowShare = float64(c.Context) / float64(c.Window)
		}
	}
}

// largest returns the tokens of the most expensive cycle, which scales the bars.
func (p *page) largest() int64 {
	most := int64(0)
	for _, c := range p.PerCycle {
		most = max(most, c.Usage.Input+c.Usage.Output)
	}
	return most
}
