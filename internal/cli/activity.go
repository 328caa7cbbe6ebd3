package cli

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	textdiff "github.com/rogpeppe/go-internal/diff"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool/fs"
)

// activity is the current activity of a tree's runs and the files that their calls
// changed, from the views of the runs.
type activity struct {
	root *working
	runs map[string]*working
	// order holds the runs that have not ended, in the order of their start.
	order []*working
	edits
	// printed reports whether the last event showed what its run does.
	printed bool
	// now is the time of the drawing.
	now time.Time
}

// working is one run.
type working struct {
	run, dir string
	view     view.View
	// child is what the run above knows of it; both are nil for the root.
	child   *view.ChildRun
	above   *working
	doing   string
	text    string
	silence *silence
}

// edits are the files that calls changed.
type edits struct {
	// edit is the file change of the last event, nil for none.
	edit *edit
	// changed holds the changed files, in the order of their first change.
	changed []*changedFile
}

// edit is the change of a file by one call.
type edit struct {
	fs.Change
	// asked reports that a person approved it.
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
	switch d := e.Data.(type) {
	case event.RunStarted:
		w.dir = d.Workspace
	case event.RunForked: // The view of a fork already has the events that both runs share.
		w = a.root
		w.run, a.runs[e.Run] = e.Run, w
	}
	dir := w.dir
	if dir == a.root.dir {
		dir = ""
	}
	a.edits.add(&w.view, e, dir)
	w.view.Add(e)
	switch d := e.Data.(type) {
	case event.ChildStarted:
		child := a.at(d.Child)
		child.child, child.above = w.view.Child(d.Child), w
		if !slices.Contains(a.order, child) {
			a.order = append(a.order, child)
		}
	case event.ChildFinished:
		a.order = slices.DeleteFunc(a.order, func(o *working) bool { return o.run == d.Child })
		a.at(d.Child).view = view.View{} // a tree may have thousands of runs
	case event.ChildParked:
		a.at(d.Child).doing = "waits for a decision"
	}
	what, known := a.doing(w, e)
	if a.printed = known; known {
		w.doing = what
	}
}

// at returns a run by id; the first one is the root.
func (a *activity) at(run string) *working {
	w := a.runs[run]
	switch {
	case w != nil:
		return w
	case a.runs == nil && a.root != nil:
		w = a.root
	default:
		w = newWorking()
	}
	if a.runs == nil {
		a.root, a.runs = w, map[string]*working{}
	}
	w.run, a.runs[run] = run, w
	return w
}

func newWorking() *working { return &working{silence: &silence{}} }

// over reports that the run shown does not go on.
func (a *activity) over() bool {
	if a.root == nil {
		return false
	}
	state := a.root.view.Run().State
	return state != "" && state != view.Running
}

// add records the files that a call changed, if the next event of a view is its result: the
// file in the arguments of a file tool, or the files that a command names for writing. dir
// is put before their names.
func (c *edits) add(v *view.View, e *event.Event, dir string) {
	c.edit = nil
	d, is := e.Data.(event.ToolResult)
	call, asked, going := v.Going(d.CallID)
	if !is || !going || d.IsError {
		return
	}
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
		c.edit = &edit{change, asked}
	}
	for _, name := range names {
		if dir != "" {
			name = filepath.Join(dir, name)
		}
		i := slices.IndexFunc(c.changed, func(f *changedFile) bool { return f.path == name })
		if i < 0 {
			i = len(c.changed)
			c.changed = append(c.changed, &changedFile{path: name})
		}
		c.changed[i].calls++
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
		w.text += d.Text
		w.text = strings.ToValidUTF8(w.text[max(len(w.text)-400, 0):], "")
		return lastLine(w.text), true
	case event.ToolCallDelta:
		return "preparing " + d.Tool, true
	case event.ToolStarted:
		if call, _, is := w.view.Going(d.CallID); is {
			return "→ " + firstLine(label(call), 100), true
		}
		return "running a tool", true
	case event.ToolProgress:
		call, _, is := w.view.Going(d.CallID)
		if !is {
			return "", false
		}
		return "→ " + firstLine(label(call), 60) + " · " + firstLine(howFar(d), 40), true
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

// howFar returns the progress of a call as text.
func howFar(p event.ToolProgress) string {
	text := strconv.FormatFloat(p.Done, 'f', -1, 64)
	if p.Total > 0 {
		text = fmt.Sprintf("%.0f %%", 100*p.Done/p.Total)
	}
	return strings.TrimSpace(text + " " + p.Message)
}

// lastLine returns the last line of a text that is not empty.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return firstLine(text[strings.LastIndexByte(text, '\n')+1:], 100)
}

// summary returns what the run does in one line, with the silence of its model.
func (w *working) summary(k ink, costs bool, now time.Time) string {
	where, costing := w.cycleText(k), ""
	if used := w.view.Run(); costs && used.Cost != nil {
		costing = money(used.Cost, used.Usage)
	}
	return strings.Join(slices.DeleteFunc([]string{where, costing, w.silence.text(now), w.doing}, func(s string) bool { return s == "" }), "  ")
}

// cycleText returns the progress of the run in cycles.
func (w *working) cycleText(k ink) string {
	at := w.view.Position()
	if at.Cycle == 0 {
		return ""
	}
	return strings.TrimSpace(view.Position(at) + " " + k.part(at.Cycle, at.MaxCycles))
}

// called returns the step that a run performs, or its name. The runs of a loop are named
// after their agents.
func (a *activity) called(w *working) string {
	switch {
	case w.child == nil:
		return ""
	case a.root.view.Steps.Ledger != nil:
		return cmp.Or(w.child.Name, w.child.Of)
	}
	return cmp.Or(w.child.Of, w.child.Name)
}

// below returns a line for each child of a run that satisfies of, followed by the lines
// of its descendants.
func (a *activity) below(above *working, k ink, indent string, of func(*working) bool) []note {
	if a.over() {
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

// children describes in one line what the runs below the root do, "" without one.
func (a *activity) children() string {
	var all []string
	for _, w := range a.order {
		does := firstLine(a.called(w), 20)
		if w.doing != "" {
			does += ": " + firstLine(w.doing, max(60/len(a.order)-18, 8))
		}
		all = append(all, does)
	}
	return strings.Join(all, " · ")
}

func everyRun(*working) bool { return true }

// of returns the working runs of a step, or of its passes.
func (a *activity) of(s *steps, step string) []*working {
	if a.over() {
		return nil
	}
	var runs []*working
	for _, w := range a.order {
		if l := s.Of(w.child.Of); w.above == a.root && l != nil && l.Step == step {
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
func (a *edits) files() []note {
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
