package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
)

func (a *app) diffCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "diff RUN RUN",
		Short: "Compare two runs",
		Long: `Compares two runs. It names the first event that differs and shows the cycles of both runs from there,
side by side. Not compared: ids, times, positions, limits and budget reservations, pauses, failed
attempts, and the order in which the calls of one answer, or steps that go at once, finished.

Runs that the two started are compared as well: those of a workflow or a team by their steps with
iteration and attempt, agents that were called as tools in the order of the calls.`,
		Example: "  pawl runs diff k7x2 p4c9\n  pawl runs diff k7x2 p4c9 --json",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withRun(c.Context(), toRead, args[0], func(s *session, left journal.Run) error {
				right, err := s.find(c.Context(), args[1])
				if err != nil {
					return err
				}
				d, err := s.diff(c.Context(), left, right, nil, nil)
				if err != nil {
					return err
				}
				return a.show(asJSON, d, func() error { return a.printDiff(d) })
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// diff holds what two runs have in common and where they differ.
type diff struct {
	spot
	Left  string `json:"left"`
	Right string `json:"right"`
	// Same counts the compared events that are equal; PartAt is the first that is
	// not.
	Same   int64       `json:"same"`
	PartAt *parting    `json:"partAt,omitempty"`
	Cycles []cyclePair `json:"cycles"`
	// Below compares the runs that both started; OnlyLeft and OnlyRight are runs
	// that only one of them started.
	Below     []diff  `json:"below,omitempty"`
	OnlyLeft  []below `json:"onlyLeft,omitempty"`
	OnlyRight []below `json:"onlyRight,omitempty"`
	// left and right are texts of the first difference.
	left, right string
}

// parting is the first event that differs, on each side; a side that has already
// ended has none.
type parting struct {
	Left  json.RawMessage `json:"left,omitempty"`
	Right json.RawMessage `json:"right,omitempty"`
}

// cyclePair is the same cycle of both runs.
type cyclePair struct {
	Cycle int        `json:"cycle"`
	Same  bool       `json:"same"`
	Left  *cycleSide `json:"left,omitempty"`
	Right *cycleSide `json:"right,omitempty"`
}

type cycleSide struct {
	Text    string       `json:"text,omitempty"`
	Calls   []string     `json:"calls,omitempty"`
	Results []string     `json:"results,omitempty"`
	Cost    float64      `json:"usd"`
	Usage   llm.Usage    `json:"usage"`
	Outcome event.Reason `json:"outcome,omitempty"`
}

// side is one run of a diff: its events in the form that is compared, and the cycles
// and children from its view.
type side struct {
	told   []telling
	cycles []cycleSide
	// calls holds the events of the current answer's calls; inputs holds the inputs
	// of its cycle.
	calls, inputs []telling
	// below holds its child runs.
	below []below
	// words replaces the ids of the run and the marks of its ancestors.
	words []string
}

// telling is an event in the form that is compared: as it was decided, with
// placeholders for the run's ids.
type telling struct {
	event *event.Event
	plain []byte
}

// data returns the compared part of the event, without its cycle.
func (t telling) data() []byte {
	_, data, _ := bytes.Cut(t.plain, []byte(`"data":`))
	return bytes.TrimSuffix(data, []byte("}"))
}

// readSide reads a run; above holds its ancestors, each with its own placeholder.
func (s *session) readSide(ctx context.Context, r journal.Run, above []string) (*side, error) {
	var d view.Digest
	out := &side{words: slices.Clone(above)}
	line, err := journal.Lineage(ctx, s.store, r.ID)
	if err != nil {
		return nil, err
	}
	for _, stretch := range line {
		out.words = append(out.words, regexp.QuoteMeta(stretch.Run))
	}
	var own *regexp.Regexp
	for e, err := range drive.AsStored(ctx, s.store, r.ID) {
		if err != nil {
			return nil, err
		}
		if d, is := e.Data.(event.RunStarted); is {
			if d.Fence != nil && d.Fence.Nonce != "" {
				out.words = append(out.words, regexp.QuoteMeta(d.Fence.Nonce))
			}
			own = regexp.MustCompile(`\b(` + strings.Join(out.words, "|") + `)\b`)
		}
		d.Add(e)
		out.pass(e.Data)
		data, err := compared(e.Data)
		if err != nil {
			return nil, err
		}
		if data == nil {
			continue
		}
		body, err := encoded(e.Cycle, data)
		if err != nil {
			return nil, err
		}
		out.tell(telling{e, own.ReplaceAll(body, []byte("RUN"))})
	}
	out.settle()
	out.told = append(out.told, out.inputs...)
	out.cycles = sidesOf(d.Cycles())
	out.below = belowOf(d.Children())
	return out, nil
}

// compared returns an event as it was decided. Limits, and the approver, only show
// in their consequences.
func compared(d event.Data) (event.Data, error) {
	d = event.Decided(d)
	started, ok := d.(event.RunStarted)
	if !ok {
		return d, nil
	}
	var err error
	switch started.Machine {
	case flow.Version:
		var cfg flow.Config
		if json.Unmarshal(started.Config, &cfg) == nil {
			cfg.Limits = budget.Limits{}
			started.Config, err = json.Marshal(cfg)
		}
	case agent.Version:
		var cfg agent.Config
		if json.Unmarshal(started.Config, &cfg) == nil {
			cfg.Limits, cfg.DefaultCap, cfg.Approve = budget.Limits{}, false, ""
			started.Config, err = json.Marshal(cfg)
		}
	}
	return started, err
}

// encoded encodes an event as decided, without members that are always empty in
// that form and would show as attempt 0 or the year 1.
func encoded(cycle int, d event.Data) ([]byte, error) {
	body, err := event.Encode(&event.Event{Cycle: cycle, Data: d})
	switch d.(type) {
	case event.ModelResponse:
		body = bytes.Replace(body, []byte(`"attempt":0,`), nil, 1)
	case event.Resolving:
		body = bytes.Replace(body, []byte(`"at":"0001-01-01T00:00:00Z",`), nil, 1)
	}
	return body, err
}

// tell adds an event of the run. Events of a call are grouped with the call, in the
// order of the calls. An input is placed at the end of the cycle in which it
// arrived.
func (s *side) tell(t telling) {
	switch _, input := t.event.Data.(event.InputReceived); {
	case input:
		s.inputs = append(s.inputs, t)
	case event.CallOf(t.event.Data) != "":
		s.calls = append(s.calls, t)
	default:
		s.settle()
		s.told = append(s.told, t)
	}
}

// pass adds the inputs of a cycle when an event ends the cycle.
func (s *side) pass(d event.Data) {
	switch d.(type) {
	case event.CycleStart, event.RunTerminatedBy:
		s.settle()
		s.told, s.inputs = append(s.told, s.inputs...), nil
	}
}

// settle adds the events of an answer's calls.
func (s *side) settle() {
	slices.SortStableFunc(s.calls, func(a, b telling) int { return cmp.Compare(event.CallOf(a.event.Data), event.CallOf(b.event.Data)) })
	s.told, s.calls = append(s.told, s.calls...), nil
}

// sidesOf returns cycles without what the runs below them used, which are compared
// themselves. Results are in the order of the calls, not in the order of completion.
func sidesOf(cycles []view.CycleLine) (sides []cycleSide) {
	for _, c := range cycles {
		side := cycleSide{Text: c.Text, Usage: c.Own.Used, Outcome: c.Ends}
		if c.Own.Cost != nil {
			side.Cost = c.Own.Cost.USD
		}
		for _, call := range c.Made {
			side.Calls, side.Results = append(side.Calls, call.Label), append(side.Results, call.Output)
		}
		sides = append(sides, side)
	}
	return sides
}

// diff compares two runs and their descendants; each of their ancestors has its own
// replacement words.
func (s *session) diff(ctx context.Context, left, right journal.Run, aboveLeft, aboveRight []string) (diff, error) {
	d := diff{Left: left.ID, Right: right.ID, Cycles: []cyclePair{}}
	l, err := s.readSide(ctx, left, aboveLeft)
	if err != nil {
		return d, err
	}
	r, err := s.readSide(ctx, right, aboveRight)
	if err != nil {
		return d, err
	}
	ranks := map[string]int{}
	l.bySteps(ranks)
	r.bySteps(ranks)
	if err := d.compare(l, r); err != nil {
		return d, err
	}
	return d, s.diffBelow(ctx, &d, l, r)
}

// compare compares the events of the two runs themselves.
func (d *diff) compare(l, r *side) (err error) {
	n := 0
	for n < len(l.told) && n < len(r.told) && bytes.Equal(l.told[n].plain, r.told[n].plain) {
		n++
	}
	d.Same = int64(n)
	if n < len(l.told) || n < len(r.told) {
		d.PartAt = &parting{}
		d.left, d.right = l.says(n, r), r.says(n, l)
		if d.PartAt.Left, err = l.at(n); err != nil {
			return err
		}
		if d.PartAt.Right, err = r.at(n); err != nil {
			return err
		}
	}
	for i := range max(len(l.cycles), len(r.cycles)) {
		pair := cyclePair{Cycle: i + 1}
		if i < len(l.cycles) {
			pair.Left = &l.cycles[i]
		}
		if i < len(r.cycles) {
			pair.Right = &r.cycles[i]
		}
		pair.Same = pair.Left != nil && pair.Right != nil && alike(*pair.Left, *pair.Right)
		d.Cycles = append(d.Cycles, pair)
	}
	return nil
}

func (s *side) at(n int) (json.RawMessage, error) {
	if n >= len(s.told) {
		return nil, nil
	}
	return s.told[n].event.MarshalJSON()
}

// says returns the text of an event, starting shortly before the place where it
// differs from the other side's.
func (s *side) says(n int, other *side) string {
	if n >= len(s.told) {
		return "nothing more"
	}
	data := s.told[n].data()
	from := 0
	if n < len(other.told) {
		theirs := other.told[n].data()
		for from < len(data) && from < len(theirs) && data[from] == theirs[from] {
			from++
		}
	}
	const before, shown = 60, 300
	from = max(from-before, 0)
	for from > 0 && !utf8.RuneStart(data[from]) {
		from--
	}
	text := string(data[from:])
	if from > 0 {
		text = "…" + text
	}
	return fmt.Sprintf("event %d, %s: %s", s.told[n].event.Seq, s.told[n].event.Type(), firstLine(text, shown))
}

func alike(a, b cycleSide) bool {
	left, err := json.Marshal(a)
	right, errRight := json.Marshal(b)
	return err == nil && errRight == nil && string(left) == string(right)
}

func (a *app) printDiff(d diff) error {
	var b strings.Builder
	same, all := d.alike()
	switch {
	case d.PartAt == nil && all && same == 0:
		fmt.Fprintf(&b, "%s and %s are the same: %s\n", d.Left, d.Right, plural(int(d.Same), "event"))
	case d.PartAt == nil && all:
		fmt.Fprintf(&b, "%s and %s are the same: %s, and %s below\n", d.Left, d.Right, plural(int(d.Same), "event"), plural(same, "run"))
	default:
		d.printOwn(&b)
		d.printBelow(&b, "")
		if same > 0 {
			fmt.Fprintf(&b, "\n%s below: the same in both\n", plural(same, "run"))
		}
	}
	return a.printf("%s", b.String())
}

// printOwn prints the differences of the two runs themselves.
func (d *diff) printOwn(b *strings.Builder) {
	if d.PartAt == nil {
		fmt.Fprintf(b, "%s and %s have all their %s in common, and part below\n", d.Left, d.Right, plural(int(d.Same), "event"))
		return
	}
	fmt.Fprintf(b, "%s and %s have %s in common and part here:\n", d.Left, d.Right, plural(int(d.Same), "event"))
	fmt.Fprintf(b, "  %s  %s\n  %s  %s\n", d.Left, d.left, d.Right, d.right)
	for _, c := range d.Cycles {
		if c.Same {
			continue
		}
		fmt.Fprintf(b, "\ncycle %d\n", c.Cycle)
		c.Left.print(b, d.Left)
		c.Right.print(b, d.Right)
	}
}

func (c *cycleSide) print(b *strings.Builder, run string) {
	if c == nil {
		fmt.Fprintf(b, "  %s  had ended\n", run)
		return
	}
	fmt.Fprintf(b, "  %s  %d in, %d out, %s  %s\n", run, c.Usage.Input, c.Usage.Output, usd(c.Cost, c.Usage), firstLine(c.Text, 100))
	for i, call := range c.Calls {
		fmt.Fprintf(b, "    → %s\n      %s\n", firstLine(call, 100), firstLine(c.Results[i], 100))
	}
	if c.Outcome != "" {
		fmt.Fprintf(b, "    ends: %s\n", c.Outcome)
	}
}
