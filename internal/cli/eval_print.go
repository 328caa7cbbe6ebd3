package cli

import (
	"fmt"
	"os"

	"github.com/pawlrun/pawl/internal/evaluation"
	"github.com/pawlrun/pawl/llm"
)

// tried returns the line that a decided run is shown as while others go on.
func tried(name string, t evaluation.Trial) note {
	line := fmt.Sprintf("%s  %s  USD %.4f  %s", name, t.Run, t.USD+t.JudgeUSD, lasting(t.Seconds))
	if t.Pass {
		return note{green, "pass  " + line}
	}
	return note{red, "FAIL  " + line + "  " + firstLine(t.Why(), 200)}
}

// printEvaluated prints a report as a table, a line for each case and one for all.
func (a *app) printEvaluated(r evaluated) error {
	most := 0
	for _, c := range r.Cases {
		most = max(most, c.Runs)
	}
	row := func(name string, s evaluation.Sum, seconds float64, why string) []string {
		cells := []string{name, fmt.Sprintf("%d/%d", s.Passed, s.Runs), fmt.Sprintf("%.2f", s.PassAt1)}
		if most > 1 {
			cells = append(cells, fmt.Sprintf("%.2f", s.PassAtAll))
		}
		return append(cells, usd(s.USD+s.JudgeUSD, llm.Usage{}), lasting(seconds), why)
	}
	head := []string{"CASE", "PASSED", "PASS@1"}
	if most > 1 {
		head = append(head, fmt.Sprintf("PASS@%d", most))
	}
	rows := [][]string{append(head, "COST", "TIME", "")}
	for _, c := range r.Cases {
		why := ""
		for _, t := range c.Trials {
			if why = firstLine(t.Why(), 100); why != "" {
				break
			}
		}
		rows = append(rows, row(harmless(c.Name), c.Sum, c.Seconds, why))
	}
	rows = append(rows, row("all", r.Sum, r.Seconds, ""))
	width := 0
	if s := screenOf(a.out, os.Getenv); s.terminal {
		width = s.width()
	}
	for _, line := range aligned(rows) {
		if width > 0 {
			line = clip(line, width)
		}
		if err := a.printf("%s\n", line); err != nil {
			return err
		}
	}
	if r.Against != nil {
		if err := a.printCompared(r.Against); err != nil {
			return err
		}
	}
	again := fmt.Sprintf("%s eval %s", a.invocation(), shellWord(r.File))
	switch r.Stopped {
	case "":
		return a.printf("%s: %.0f %% of %s passed, %.0f %% must\n", verdict(r.OK), 100*r.Share(), plural(r.Runs, "run"), 100*r.Threshold)
	case "budget":
		return a.printf("the budget is used up and %s left; go on with: %s --budget USD\n", areLeft(r.Left), again)
	}
	return a.printf("interrupted, and %s left; go on with: %s\n", areLeft(r.Left), again)
}

func verdict(ok bool) string {
	if ok {
		return "ok"
	}
	return "not ok"
}

func areLeft(n int) string {
	if n == 1 {
		return "1 run is"
	}
	return plural(n, "run") + " are"
}

// printCompared prints the cases whose results differ from an earlier report.
func (a *app) printCompared(c *evaluation.Comparison) error {
	same := 0
	of := func(s *evaluation.Sum) string {
		if s == nil {
			return "none"
		}
		return fmt.Sprintf("%d/%d", s.Passed, s.Runs)
	}
	rows := [][]string{}
	for _, change := range c.Cases {
		word := "better"
		switch {
		case change.Same():
			same++
			continue
		case change.Worse:
			word = "WORSE"
		case change.Before == nil:
			word = "new"
		case change.After == nil:
			word = "gone"
		}
		rows = append(rows, []string{word, harmless(change.Name), of(change.Before) + " → " + of(change.After)})
	}
	if err := a.printf("against the earlier result: %s the same, cost %+.4f USD\n", plural(same, "case"), c.USD); err != nil {
		return err
	}
	for _, line := range aligned(rows) {
		if err := a.printf("  %s\n", line); err != nil {
			return err
		}
	}
	return nil
}
