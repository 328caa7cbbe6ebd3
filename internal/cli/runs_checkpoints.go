package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/view"
)

// checkpointLines lists the checkpoints of a goal: the question, the answer, and
// the plan.
func (p *page) checkpointLines(b *strings.Builder) {
	for _, d := range p.Checkpoints {
		fmt.Fprintf(b, "\n%s\n", view.CheckpointHead(d))
		for _, q := range d.Questions {
			fmt.Fprintf(b, "  %s\n    %s\n", q.Question, firstLine(q.Answer, 400))
		}
		for i, step := range planOfGoal(d) {
			if i == 0 {
				b.WriteString("  Plan\n")
			}
			fmt.Fprintf(b, "    %d. %s\n", i+1, firstLine(step, 200))
		}
	}
}

func planOfGoal(d event.Checkpoint) (steps []string) {
	if json.Unmarshal(d.Plan, &steps) != nil {
		return nil
	}
	return steps
}
