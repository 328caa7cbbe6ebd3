package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/rules/compact"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
)

// compactions prints the compactions of the conversation, and how to undo them.
func (p *page) compactions(b *strings.Builder, pawl string) {
	if len(p.Compactions) == 0 {
		return
	}
	b.WriteString("\nhistory compressed\n")
	for _, c := range p.Compactions {
		fmt.Fprintf(b, "event %-4d after cycle %-3d %d -> %d tokens (%s, %s): %s\n",
			c.Seq, c.Cycle, c.TokensBefore, c.TokensAfter, c.Strategy, c.Trigger, view.Leaving(c.HistoryCompressed))
	}
	last := p.Compactions[len(p.Compactions)-1]
	fmt.Fprintf(b, "what left: %s runs show %s --compression %d\nundo:      %s runs fork %s --seq %d --context-window N\n",
		pawl, p.ID, last.Seq, pawl, p.ID, last.UndoSeq)
}

// shownMessage is one message of the conversation before a compaction.
type shownMessage struct {
	Place   int          `json:"place"`
	Fate    compact.Fate `json:"fate"`
	Message *llm.Message `json:"message"`
}

// shownCompaction is a compaction with the whole conversation before it.
type shownCompaction struct {
	Run string `json:"run"`
	view.Compaction
	Messages []shownMessage `json:"messages"`
}

// compression finds a compaction of a run by its event.
func (s *session) compression(ctx context.Context, r journal.Run, seq int64) (shownCompaction, error) {
	out := shownCompaction{Run: r.ID}
	var places []string
	for e, err := range drive.AsStored(ctx, s.store, r.ID, event.TypeHistoryCompressed) {
		if err != nil {
			return out, err
		}
		d, _ := e.Data.(event.HistoryCompressed)
		places = append(places, fmt.Sprint(e.Seq))
		if e.Seq == seq {
			out.Compaction = view.CompactionOf(e, d)
		}
	}
	switch {
	case len(places) == 0:
		return out, usagef("the history of run %s was never compressed", r.ID)
	case out.Seq == 0:
		return out, usagef("event %d of run %s compresses no history; these do: %s", seq, r.ID, strings.Join(places, ", "))
	}
	before, err := s.engine.Branch(ctx, r.ID, out.UndoSeq)
	if err != nil {
		return out, err
	}
	m, ok := before.Machine.(machine.Conversing)
	if !ok {
		return out, fmt.Errorf("run %s is no conversation", r.ID)
	}
	messages := m.Transcript()
	fates, err := compact.Fates(messages, out.HistoryCompressed)
	if err != nil {
		return out, fmt.Errorf("run %s, event %d: %w", r.ID, seq, err)
	}
	for i, message := range messages {
		out.Messages = append(out.Messages, shownMessage{i + 1, fates[i], message})
	}
	return out, nil
}

// printCompression prints a compaction for a person.
func (a *app) printCompression(c shownCompaction) error {
	var b strings.Builder
	fmt.Fprintf(&b, "event %d of run %s, after cycle %d: %d -> %d tokens (%s, %s)\n%s\n\n", c.Seq, c.Run, c.Cycle,
		c.TokensBefore, c.TokensAfter, c.Strategy, c.Trigger, view.Leaving(c.HistoryCompressed))
	for _, m := range c.Messages {
		fmt.Fprintf(&b, "%-9s %4d %-9s %s\n", m.Fate, m.Place, m.Message.Role, gist(m.Message))
	}
	if c.Summary != "" {
		fmt.Fprintf(&b, "\nin their place, as message %d:\n%s\n", c.SummaryAt+1, harmless(c.Summary))
	}
	fmt.Fprintf(&b, "\nundo: %s runs fork %s --seq %d --context-window N, or --model with a larger window\n", a.invocation(), c.Run, c.UndoSeq)
	return a.printf("%s", b.String())
}

// gist returns a message in one line.
func gist(m *llm.Message) string {
	var parts []string
	if text := firstLine(m.Text(), 80); text != "" {
		parts = append(parts, text)
	}
	for _, p := range m.Parts {
		switch p := p.(type) {
		case llm.ToolCall:
			parts = append(parts, "→ "+firstLine(p.Name+" "+string(p.Args)+p.ArgsText, 60))
		case llm.ToolResult:
			parts = append(parts, "← "+firstLine(p.Name+" "+p.Output, 60))
		case llm.Media:
			parts = append(parts, "["+firstLine(p.MediaType+" "+p.Name, 40)+"]")
		}
	}
	return strings.Join(parts, "  ")
}
