package cli

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	textdiff "github.com/rogpeppe/go-internal/diff"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool/fs"
)

// activity is the current activity of a tree's runs and the files that their calls
// changed, folded from all of their events.
type activity struct {
	root *working
	runs map[string]*working
	// order holds the runs that have not ended, in the order of their start.
	order []*working
	// calls holds the calls without a result by id, and asked those of them that
	// wait for a person's decision.
	calls map[string]event.ToolCall
	asked map[string]bool
	// edit is the file change of the last event, nil for none.
	edit *edit
	// changed holds the changed files, in the order of their first change.
	changed []*changedFile
	// told reports that the last event shows what its run does.
	told bool
	// now is the time of the drawing.
	now time.Time
	// byName names runs after their agents, even if they are steps.
	byName bool
	// over reports that the root is not running.
	over bool
}

// working is one run.
type working struct {
	run, name, step, dir string
	// above started the run, nil for the root.
	above     *working
	doing     string
	text      string
	cycle, of int
	spent
	silence *silence
}

// edit is the change of a file by one call.
type edit struct {
	fs.Change
	// by is the run that made the call; asked reports that a person approved it.
	by    *working
	asked bool
}

// changedFile is a file with the number of calls that changed it.
type changedFile struct {
	path  string
	calls int
}

// add applies an event of any run of the tree.
func (a *activity) add(e *event.Event) {
	w := a.at(e.Run)
	a.edit = nil
	switch d := e.Data.(type) {
	case event.RunStarted:
		w.dir = d.Workspace
	case event.RunForked: // the events before it have the run that the fork shares them with
		w = a.root
		w.run, a.runs[e.Run] = e.Run, w
	case event.ChildStarted:
		child := a.at(d.Child)
		child.name, child.step, child.above = d.Name, d.Step, w
		if !slices.Contains(a.order, child) {
			a.order = append(a.order, child)
		}
	case event.ChildFinished:
		a.order = slices.DeleteFunc(a.order, func(o *working) bool { return o.run == d.Child })
	case event.ChildParked:
		a.at(d.Child).doing = "waits for a decision"
	case event.RunParked, event.RunCompleted:
		a.over = a.over || w == a.root
	case event.RunResumed:
		a.over = a.over && w != a.root
	case event.CycleStart:
		w.cycle, w.of = d.Cycle, d.MaxCycles
	case event.ModelAttemptFailed:
		w.Spend(d.Usage, d.Cost)
	case event.ModelResponse:
		w.Spend(d.Usage, d.Cost)
	case event.ToolCall:
		a.calls[d.CallID] = d
	case event.Asking:
		a.asked[d.Question().ID] = true
	case event.ToolResult:
		if call, ok := a.calls[d.CallID]; ok && !d.IsError {
			a.made(w, call)
		}
		delete(a.calls, d.CallID)
		delete(a.asked, d.CallID)
	}
	what, known := a.doing(w, e)
	if a.told = known; known {
		w.doing = what
	}
}

// at returns a run by id; the first one is the root.
func (a *activity) at(run string) *working {
	if a.runs == nil {
		a.runs, a.calls, a.asked = map[string]*working{}, map[string]event.ToolCall{}, map[string]bool{}
	}
	w := a.runs[run]
	if w == nil {
		w = &working{run: run, silence: &silence{}}
		a.runs[run] = w
	}
	if a.root == nil {
		a.root = w
	}
	return w
}

// made records the files that a call changed: the file in the arguments of a file
// tool, or the files that a command names for writing.
func (a *activity) made(w *working, call event.ToolCall) {
	change, known := fs.ChangeOf(call.Tool, call.Args)
	var names []string
	if call.Facts != nil {
		for _, p := range call.Facts.Paths {
			if p.Write && !(p.Outside || p.Tree || p.Unknown || p.Given || p.Alias || p.Pattern || p.Scratch || p.Repository) {
				names = append(names, p.Path)
			}
		}
	}
	if known {
		names = append(names, path.Clean(change.Path))[:1]
		change.Path = names[0]
		a.edit = &edit{change, w, a.asked[call.CallID]}
	}
	for _, name := range names {
		if w.dir != a.root.dir && w.dir != "" {
			name = filepath.Join(w.dir, name)
		}
		i := slices.IndexFunc(a.changed, func(c *changedFile) bool { return c.path == name })
		if i < 0 {
			i = len(a.changed)
			a.changed = append(a.changed, &changedFile{path: name})
		}
		a.changed[i].calls++
	}
}

// doing returns what a run does after an event, and whether the event changes that;
// "" for nothing.
func (a *activity) doing(w *working, e *event.Event) (what string, known bool) {
	switch d := e.Data.(type) {
	case event.CycleStart, event.ModelRequested:
		w.text = ""
		return "waiting for the model", true
	case event.Reasoning:
		return "thinking", true
	case event.Text:
		w.text = lastBytes(w.text+d.Text, 400)
		return lastLine(w.text), true
	case event.ToolCallDelta:
		return "preparing " + d.Tool, true
	case event.ToolStarted:
		if call, ok := a.calls[d.CallID]; ok {
			return "→ " + firstLine(label(call), 100), true
		}
		return "running a tool", true
	case event.ToolRetrying, event.ModelRetrying:
		return "waiting to try again", true
	case event.ModelResponse:
		if w == a.root {
			return "", true // its text stays on the screen
		}
		return lastLine(llm.Parts(d.Parts).Text()), d.Purpose == ""
	case event.Asking, event.RunParked, event.RunCompleted:
		return "", true
	}
	return "", false
}

// lastBytes returns at most most bytes from the end of a text.
func lastBytes(text string, most int) string {
	return strings.ToValidUTF8(text[max(len(text)-most, 0):], "")
}

// lastLine returns the last line of a text that is not empty.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return firstLine(text[strings.LastIndexByte(text, '\n')+1:], 100)
}

// summary returns what the run does in one line, with the silence of its model.
func (w *working) summary(k ink, costs bool, now time.Time) string {
	where, costing := w.cycleText(k), ""
	if costs && w.Cost != nil {
		costing = money(w.Cost, w.Used)
	}
	return strings.Join(slices.DeleteFunc([]string{where, costing, w.silence.text(now), w.doing}, func(s string) bool { return s == "" }), "  ")
}

// cycleText returns the progress of the run in cycles.
func (w *working) cycleText(k ink) string {
	if w.cycle == 0 {
		return ""
	}
	return strings.TrimSpace(view.Position(event.CycleStart{Cycle: w.cycle, MaxCycles: w.of}) + " " + k.part(w.cycle, w.of))
}

// called returns the step that a run performs, or its name.
func (a *activity) called(w *working) string {
	if a.byName {
		return cmp.Or(w.name, w.step)
	}
	return cmp.Or(w.step, w.name)
}

// below returns the lines of a run's children that satisfy of, each followed by
// those of its descendants.
func (a *activity) below(above *working, k ink, indent string, of func(*working) bool) []note {
	if a.over {
		return nil
	}
	var notes []note
	for _, w := range a.order {
		if w.above != above || !of(w) {
			continue
		}
		notes = append(notes, note{plain, strings.TrimRight(indent+"▸ "+firstLine(a.called(w), 40)+"  "+w.summary(k, true, a.now), " ")})
		notes = append(notes, a.below(w, k, indent+"  ", everyRun)...)
	}
	return notes
}

func everyRun(*working) bool { return true }

// of returns the working runs of a step, or of its passes.
func (a *activity) of(s *steps, step string) []*working {
	if a.over {
		return nil
	}
	var runs []*working
	for _, w := range a.order {
		if l := s.Of(w.step); w.above == a.root && l != nil && l.Step == step {
			runs = append(runs, w)
		}
	}
	return runs
}

// How many lines of a change, and how many changed files, are shown.
const (
	mostOfEdit    = 8
	mostOfChanged = 20
)

// lines returns the change in a few lines of a width.
func (e *edit) lines(width int) []note {
	text := string(textdiff.Diff("before", []byte(e.Old), "after", []byte(e.New)))
	_, text, _ = strings.Cut(text, "\n@@")
	_, text, _ = strings.Cut(text, "\n")
	var notes []note
	left := 0
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		switch {
		case line == "" || line[0] == '@' || line[0] == '\\':
		case len(notes) == mostOfEdit:
			left++
		default:
			line = strings.ReplaceAll(harmless(strings.TrimSuffix(line, "\r")), "\t", "    ")
			notes = append(notes, note{styleOf(line), clip("    "+line, width)})
		}
	}
	if left > 0 {
		notes = append(notes, note{faint, "    … and " + plural(left, "more line")})
	}
	return notes
}

// files returns notes about the files that the calls of all runs changed.
func (a *activity) files() []note {
	if len(a.changed) == 0 {
		return nil
	}
	notes := []note{{plain, "files changed:"}}
	for _, c := range a.changed[:min(len(a.changed), mostOfChanged)] {
		text := "  " + onOneLine(c.path)
		if c.calls > 1 {
			text += fmt.Sprintf(" (%d times)", c.calls)
		}
		notes = append(notes, note{plain, text})
	}
	if more := len(a.changed) - mostOfChanged; more > 0 {
		notes = append(notes, note{faint, "  and " + plural(more, "more file")})
	}
	return notes
}
