// Package compare compares two runs: what each decided and did, event by event, cycle by
// cycle, with all runs below them.
package compare

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/internal/view/terminal"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
)

// Diff holds what two runs have in common and where they differ.
type Diff struct {
	Spot
	Left  string `json:"left"`
	Right string `json:"right"`
	// Same counts the compared events that are equal; PartAt is the first that is
	// not.
	Same   int64       `json:"same"`
	PartAt *Parting    `json:"partAt,omitempty"`
	Cycles []CyclePair `json:"cycles"`
	// Below compares the runs that both started; OnlyLeft and OnlyRight are runs
	// that only one of them started.
	Below     []Diff  `json:"below,omitempty"`
	OnlyLeft  []Child `json:"onlyLeft,omitempty"`
	OnlyRight []Child `json:"onlyRight,omitempty"`
}

// Parting is the first event that differs, on each side; a side that has already
// ended has none. The texts say it in one line.
type Parting struct {
	Left      json.RawMessage `json:"left,omitempty"`
	Right     json.RawMessage `json:"right,omitempty"`
	LeftText  string          `json:"leftText"`
	RightText string          `json:"rightText"`
}

// CyclePair is the same cycle of both runs.
type CyclePair struct {
	Cycle int        `json:"cycle"`
	Same  bool       `json:"same"`
	Left  *CycleSide `json:"left,omitempty"`
	Right *CycleSide `json:"right,omitempty"`
}

// CycleSide is a cycle of one of the runs. Seconds is not compared.
type CycleSide struct {
	Text    string       `json:"text,omitempty"`
	Calls   []string     `json:"calls,omitempty"`
	Results []string     `json:"results,omitempty"`
	Cost    float64      `json:"usd"`
	Usage   llm.Usage    `json:"usage"`
	Seconds float64      `json:"seconds"`
	Outcome event.Reason `json:"outcome,omitempty"`
}

// side is one run of a comparison: its events in the form that is compared, and the
// cycles and children from its view.
type side struct {
	events []plainEvent
	cycles []CycleSide
	// calls holds the events of the current answer's calls; inputs holds the inputs
	// of its cycle.
	calls, inputs []plainEvent
	// below holds its child runs.
	below []Child
	// words replaces the ids of the run and the marks of its ancestors.
	words []string
}

// plainEvent is an event in the form that is compared: as it was decided, with
// placeholders for the run's ids.
type plainEvent struct {
	event *event.Event
	plain []byte
}

// data returns the compared part of the event, without its cycle.
func (t plainEvent) data() []byte {
	_, data, _ := bytes.Cut(t.plain, []byte(`"data":`))
	return bytes.TrimSuffix(data, []byte("}"))
}

// readSide reads a run; above holds its ancestors, each with its own placeholder.
func readSide(ctx context.Context, store journal.Store, run string, above []string) (*side, error) {
	var d view.Digest
	out := &side{words: slices.Clone(above)}
	line, err := journal.Lineage(ctx, store, run)
	if err != nil {
		return nil, err
	}
	for _, stretch := range line {
		out.words = append(out.words, regexp.QuoteMeta(stretch.Run))
	}
	var own *regexp.Regexp
	var end time.Time
	for e, err := range drive.AsStored(ctx, store, run) {
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
		end = e.Time
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
		out.add(plainEvent{e, own.ReplaceAll(body, []byte("RUN"))})
	}
	out.settle()
	out.events = append(out.events, out.inputs...)
	out.cycles = sidesOf(d.Cycles(), end)
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

// add adds an event of the run. Events of a call are grouped with the call, in the
// order of the calls. An input is placed at the end of the cycle in which it
// arrived.
func (s *side) add(t plainEvent) {
	switch _, input := t.event.Data.(event.InputReceived); {
	case input:
		s.inputs = append(s.inputs, t)
	case event.CallOf(t.event.Data) != "":
		s.calls = append(s.calls, t)
	default:
		s.settle()
		s.events = append(s.events, t)
	}
}

// pass adds the inputs of a cycle when an event ends the cycle.
func (s *side) pass(d event.Data) {
	switch d.(type) {
	case event.CycleStart, event.RunTerminatedBy:
		s.settle()
		s.events, s.inputs = append(s.events, s.inputs...), nil
	}
}

// settle adds the events of an answer's calls.
func (s *side) settle() {
	slices.SortStableFunc(s.calls, func(a, b plainEvent) int { return cmp.Compare(event.CallOf(a.event.Data), event.CallOf(b.event.Data)) })
	s.events, s.calls = append(s.events, s.calls...), nil
}

// sidesOf returns cycles without what the runs below them used, which are compared
// themselves. Results are in the order of the calls, not in the order of completion.
// end is the time of the run's last event.
func sidesOf(cycles []view.CycleLine, end time.Time) (sides []CycleSide) {
	for i, c := range cycles {
		until := end
		if i+1 < len(cycles) {
			until = cycles[i+1].Start
		}
		side := CycleSide{Text: c.Text, Usage: c.Own.Used, Outcome: c.Ends, Seconds: max(until.Sub(c.Start).Seconds(), 0)}
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

// Runs compares two runs and the runs below them.
func Runs(ctx context.Context, store journal.Store, left, right string) (Diff, error) {
	return diff(ctx, store, left, right, nil, nil)
}

// diff compares two runs and their descendants; each of their ancestors has its own
// replacement words.
func diff(ctx context.Context, store journal.Store, left, right string, aboveLeft, aboveRight []string) (Diff, error) {
	d := Diff{Left: left, Right: right, Cycles: []CyclePair{}}
	l, err := readSide(ctx, store, left, aboveLeft)
	if err != nil {
		return d, err
	}
	r, err := readSide(ctx, store, right, aboveRight)
	if err != nil {
		return d, err
	}
	ranks := map[string]int{}
	l.bySteps(ranks)
	r.bySteps(ranks)
	if err := d.compare(l, r); err != nil {
		return d, err
	}
	return d, d.compareBelow(ctx, store, l, r)
}

// compare compares the events of the two runs themselves.
func (d *Diff) compare(l, r *side) (err error) {
	n := 0
	for n < len(l.events) && n < len(r.events) && bytes.Equal(l.events[n].plain, r.events[n].plain) {
		n++
	}
	d.Same = int64(n)
	if n < len(l.events) || n < len(r.events) {
		d.PartAt = &Parting{LeftText: l.excerpt(n, r), RightText: r.excerpt(n, l)}
		if d.PartAt.Left, err = l.at(n); err != nil {
			return err
		}
		if d.PartAt.Right, err = r.at(n); err != nil {
			return err
		}
	}
	for i := range max(len(l.cycles), len(r.cycles)) {
		pair := CyclePair{Cycle: i + 1}
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
	if n >= len(s.events) {
		return nil, nil
	}
	return s.events[n].event.MarshalJSON()
}

// excerpt returns the text of an event, starting shortly before the place where it
// differs from the other side's.
func (s *side) excerpt(n int, other *side) string {
	if n >= len(s.events) {
		return "nothing more"
	}
	data := s.events[n].data()
	from := 0
	if n < len(other.events) {
		theirs := other.events[n].data()
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
	return fmt.Sprintf("event %d, %s: %s", s.events[n].event.Seq, s.events[n].event.Type(), terminal.FirstLine(text, shown))
}

func alike(a, b CycleSide) bool {
	a.Seconds, b.Seconds = 0, 0
	left, err := json.Marshal(a)
	right, errRight := json.Marshal(b)
	return err == nil && errRight == nil && string(left) == string(right)
}
