package drive

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// prompt identifies the prompt of one request, segment by segment.
type prompt struct {
	fixed    fixedSums
	messages []uint32
	// total counts the messages; those beyond messages are unknown.
	total int
}

// fixedSums are the sums of the parts before the messages: the tools, the system text,
// and all of it as encoded.
type fixedSums struct{ tools, system, all uint32 }

// maxJournalledSums bounds the sums of new messages in one event.
const maxJournalledSums = 128

// sumPrompt identifies a request. It computes the sums of the parts before the messages
// only if they differ from the previous request's.
func sumPrompt(req *llm.Request, before *prompt) prompt {
	var p prompt
	if sums := req.Encoded.Prompt; len(sums) > 0 {
		p.fixed.all, p.messages = sums[0], sums[1:]
	}
	p.total = len(p.messages)
	if p.fixed.all == before.fixed.all {
		p.fixed = before.fixed
	} else {
		p.fixed.tools, p.fixed.system = sumTools(req.Tools), crc32.ChecksumIEEE([]byte(req.System))
	}
	return p
}

func sumTools(tools []llm.ToolDef) uint32 {
	var sum uint32
	for i := range tools {
		t := &tools[i]
		sum = crc32.Update(sum, crc32.IEEETable, []byte(t.Name))
		sum = crc32.Update(sum, crc32.IEEETable, []byte(t.Description))
		sum = crc32.Update(sum, crc32.IEEETable, t.Schema)
	}
	return sum
}

// kept counts the leading messages that both prompts contain.
func (p *prompt) kept(before *prompt) int {
	n := 0
	for n < len(p.messages) && n < len(before.messages) && p.messages[n] == before.messages[n] {
		n++
	}
	return n
}

// changed names the first segment of before that p does not contain, or "" if p
// continues before.
func (p *prompt) changed(before *prompt) string {
	switch {
	case p.fixed.tools != before.fixed.tools:
		return "tools"
	case p.fixed.system != before.fixed.system:
		return "system"
	case p.fixed.all != before.fixed.all:
		return "settings"
	}
	if n := p.kept(before); n < min(len(before.messages), len(p.messages)) || p.total < before.total {
		return fmt.Sprintf("message %d", n+1)
	}
	return ""
}

// since returns the form of p for the journal, given the previous request's prompt.
func (p *prompt) since(before *prompt) *event.PromptSums {
	s := &event.PromptSums{Kept: p.kept(before), Messages: p.total}
	if p.fixed != before.fixed {
		s.Fixed = joinSums([]uint32{p.fixed.tools, p.fixed.system, p.fixed.all})
	}
	news := p.messages[s.Kept:]
	s.New = joinSums(news[:min(len(news), maxJournalledSums)])
	return s
}

// follow returns the prompt from its form in the journal and the previous prompt.
func follow(before prompt, s *event.PromptSums) prompt {
	p := prompt{fixed: before.fixed, total: s.Messages}
	if f := splitSums(s.Fixed); len(f) == 3 {
		p.fixed = fixedSums{tools: f[0], system: f[1], all: f[2]}
	}
	// The capacity is limited, so that an older prompt is never overwritten.
	kept := min(max(s.Kept, 0), len(before.messages))
	p.messages = append(before.messages[:kept:kept], splitSums(s.New)...)
	return p
}

func joinSums(sums []uint32) string {
	b := make([]byte, 0, 4*len(sums))
	for _, s := range sums {
		b = binary.BigEndian.AppendUint32(b, s)
	}
	return hex.EncodeToString(b)
}

// splitSums parses the output of joinSums, and returns none for anything else.
func splitSums(text string) []uint32 {
	b, err := hex.DecodeString(text)
	if err != nil {
		return nil
	}
	sums := make([]uint32, len(b)/4)
	for i := range sums {
		sums[i] = binary.BigEndian.Uint32(b[4*i:])
	}
	return sums
}
