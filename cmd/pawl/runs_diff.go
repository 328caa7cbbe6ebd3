package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
)

func (a *app) diffCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "diff RUN RUN",
		Short: "Show where two runs part, and what each did from there",
		Long: `Compares the events of two runs, without what always differs (ids, times, positions), names the
first that is not the same, and shows the cycles of both from there side by side. Of a run and its
replay it also leaves out when the run was paused, told something, answered and given a higher limit.`,
		Example: "  pawl runs diff k7x2 p4c9\n  pawl runs diff k7x2 p4c9 --json",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withRun(c.Context(), toRead, args[0], func(s *session, left journal.Run) error {
				right, err := s.find(c.Context(), args[1])
				if err != nil {
					return err
				}
				d, err := s.diff(c.Context(), left, right)
				if err != nil {
					return err
				}
				if asJSON {
					return a.printJSON(d)
				}
				return a.printDiff(d)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// diff is what two runs have in common and where they part.
type diff struct {
	Left  string `json:"left"`
	Right string `json:"right"`
	// Same is how many events are alike, PartAt the first that is not.
	Same   int64       `json:"same"`
	PartAt *parting    `json:"partAt,omitempty"`
	Cycles []cyclePair `json:"cycles"`
	// left and right are the first that is not alike, in words.
	left, right string
}

// parting is the first event that differs, as each run has it; one that has
// ended by then has none.
type parting struct {
	Left  json.RawMessage `json:"left,omitempty"`
	Right json.RawMessage `json:"right,omitempty"`
}

// cyclePair is what two runs did in one cycle.
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
	// called are the calls by their ids: Results stand in the order of Calls,
	// whichever was done first.
	called map[string]int
}

// side is a run as the diff reads it.
type side struct {
	events []*event.Event
	plain  [][]byte
	cycles []cycleSide
}

// readSide reads a run, with one word in the place of the ids that it has. What a
// replay does not repeat is left out where the two sides are a run and its replay.
func (s *session) readSide(ctx context.Context, r journal.Run, ofReplay bool) (*side, error) {
	out := &side{}
	line, err := journal.Lineage(ctx, s.store, r.ID)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(line))
	for i, stretch := range line {
		ids[i] = regexp.QuoteMeta(stretch.Run)
	}
	own := regexp.MustCompile(`\b(` + strings.Join(ids, "|") + `)\b`)
	err = s.each(ctx, r.ID, 0, func(_ journal.Record, e *event.Event) error {
		data := timeless(e.Data)
		switch d := data.(type) {
		case event.RunForked, event.RunResumed:
			return nil // how a run came to go on is not what it did
		case event.RunStarted:
			if ofReplay {
				begun, err := s.launchedForReplay(ctx, r)
				if err != nil {
					return err
				}
				d.Config = begun.Config
				data = d
			}
		}
		if ofReplay {
			if data = answered(data); data == nil {
				return nil
			}
		}
		body, err := event.Encode(&event.Event{Cycle: e.Cycle, Data: data})
		if err != nil {
			return err
		}
		out.events = append(out.events, e)
		out.plain = append(out.plain, own.ReplaceAll(body, []byte("RUN")))
		out.add(e)
		return nil
	})
	return out, err
}

// timeless leaves out of an event what a replay never repeats.
func timeless(d event.Data) event.Data {
	switch d := d.(type) {
	case event.RunStarted:
		d.Replays = ""
		return d
	case event.ToolResult:
		d.DurationMs, d.Tree = 0, ""
		return d
	case event.ModelResponse:
		d.ResponseID, d.RequestID = "", ""
		return d
	case event.ModelRequested:
		d.RequestDigest, d.RequestBytes = "", 0
		return d
	case event.ModelAttemptFailed:
		d.RequestID = ""
		return d
	case event.ToolPendingApproval:
		d.ExpiresAt = nil
		return d
	case event.ToolApprovalResolved:
		d.At = time.Time{}
		return d
	}
	return d
}

// answered leaves out of an event what a run has and its replay has not, or at
// another place of the cycle, because what people do to a run is done to a replay
// beforehand and no tool of it reaches out; nil for one that only is about these.
func answered(d event.Data) event.Data {
	switch d := d.(type) {
	case event.RunParked, event.PauseRequested, event.InputReceived, event.BudgetRaised, event.BudgetWarning:
		return nil
	case event.ToolResult:
		d.Reached = nil
		return d
	case event.ToolApprovalResolved:
		d.Approver, d.Reason = "", ""
		return d
	}
	return d
}

func (s *side) add(e *event.Event) {
	if _, ok := e.Data.(event.CycleStart); ok {
		s.cycles = append(s.cycles, cycleSide{})
	}
	if len(s.cycles) == 0 {
		return
	}
	c := &s.cycles[len(s.cycles)-1]
	switch d := e.Data.(type) {
	case event.ModelResponse:
		c.Text, c.Usage, c.Cost = llm.Parts(d.Parts).Text(), c.Usage.Add(d.Usage), c.Cost+d.Cost.USD
	case event.ModelAttemptFailed:
		c.Usage, c.Cost = c.Usage.Add(d.Usage), c.Cost+d.Cost.USD
	case event.ToolCall:
		c.call(d)
	case event.ToolResult:
		if _, made := c.called[d.CallID]; !made { // the end of its run cut it short
			c.call(event.ToolCall{CallID: d.CallID, Tool: d.Tool})
		}
		c.Results[c.called[d.CallID]] = d.Output
	case event.RunTerminatedBy:
		c.Outcome = d.Reason
	}
}

// call adds a call, or what a person made of it.
func (c *cycleSide) call(d event.ToolCall) {
	if at, edited := c.called[d.CallID]; edited {
		c.Calls[at] = label(d)
		return
	}
	if c.called == nil {
		c.called = map[string]int{}
	}
	c.called[d.CallID] = len(c.Calls)
	c.Calls, c.Results = append(c.Calls, label(d)), append(c.Results, "")
}

// isReplay says that one of two runs is a replay of the other.
func (s *session) isReplay(ctx context.Context, left, right journal.Run) (bool, error) {
	for _, pair := range [][2]journal.Run{{left, right}, {right, left}} {
		records, err := s.store.Records(ctx, pair[0].ID, 0, 1)
		if err != nil {
			return false, err
		}
		if len(records) == 0 || pair[0].ForkOf != "" {
			continue
		}
		first, err := event.Decode(records[0].Body)
		if err != nil {
			return false, err
		}
		if d, ok := first.Data.(event.RunStarted); ok && d.Replays == pair[1].ID {
			return true, nil
		}
	}
	return false, nil
}

func (s *session) diff(ctx context.Context, left, right journal.Run) (diff, error) {
	d := diff{Left: left.ID, Right: right.ID, Cycles: []cyclePair{}}
	ofReplay, err := s.isReplay(ctx, left, right)
	if err != nil {
		return d, err
	}
	l, err := s.readSide(ctx, left, ofReplay)
	if err != nil {
		return d, err
	}
	r, err := s.readSide(ctx, right, ofReplay)
	if err != nil {
		return d, err
	}
	n := 0
	for n < len(l.plain) && n < len(r.plain) && string(l.plain[n]) == string(r.plain[n]) {
		n++
	}
	d.Same = int64(n)
	if n < len(l.plain) || n < len(r.plain) {
		d.PartAt = &parting{}
		d.left, d.right = l.told(n, r), r.told(n, l)
		if d.PartAt.Left, err = l.at(n); err != nil {
			return d, err
		}
		if d.PartAt.Right, err = r.at(n); err != nil {
			return d, err
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
	return d, nil
}

func (s *side) at(n int) (json.RawMessage, error) {
	if n >= len(s.events) {
		return nil, nil
	}
	return s.events[n].MarshalJSON()
}

// told is an event from shortly before the place at which it is another than
// the other side's.
func (s *side) told(n int, other *side) string {
	if n >= len(s.events) {
		return "nothing more"
	}
	_, data, _ := bytes.Cut(s.plain[n], []byte(`"data":`))
	from := 0
	if n < len(other.events) {
		_, theirs, _ := bytes.Cut(other.plain[n], []byte(`"data":`))
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
	return fmt.Sprintf("event %d, %s: %s", s.events[n].Seq, s.events[n].Type(), firstLine(text, shown))
}

func alike(a, b cycleSide) bool {
	left, err := json.Marshal(a)
	right, errRight := json.Marshal(b)
	return err == nil && errRight == nil && string(left) == string(right)
}

func (a *app) printDiff(d diff) error {
	if d.PartAt == nil {
		return a.printf("%s and %s are the same: %s\n", d.Left, d.Right, plural(int(d.Same), "event"))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s and %s have %s in common and part here:\n", d.Left, d.Right, plural(int(d.Same), "event"))
	fmt.Fprintf(&b, "  %s  %s\n  %s  %s\n", d.Left, d.left, d.Right, d.right)
	for _, c := range d.Cycles {
		if c.Same {
			continue
		}
		fmt.Fprintf(&b, "\ncycle %d\n", c.Cycle)
		c.Left.print(&b, d.Left)
		c.Right.print(&b, d.Right)
	}
	return a.printf("%s", b.String())
}

func (c *cycleSide) print(b *strings.Builder, run string) {
	if c == nil {
		fmt.Fprintf(b, "  %s  had ended\n", run)
		return
	}
	fmt.Fprintf(b, "  %s  %d in, %d out, USD %.4f  %s\n", run, c.Usage.Input, c.Usage.Output, c.Cost, firstLine(c.Text, 100))
	for i, call := range c.Calls {
		fmt.Fprintf(b, "    → %s\n      %s\n", firstLine(call, 100), firstLine(c.Results[i], 100))
	}
	if c.Outcome != "" {
		fmt.Fprintf(b, "    ends: %s\n", c.Outcome)
	}
}
