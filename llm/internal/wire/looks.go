package wire

import (
	"bufio"

	"github.com/pawlrun/pawl/llm"
)

// StartsWithObject says that an answer is one JSON object rather than a stream
// of events, by its first byte. Some services answer whole although a stream
// was asked for, and some proxies drop the Content-Type (FIELD F20).
func StartsWithObject(r *bufio.Reader) (bool, error) {
	for {
		c, err := r.ReadByte()
		if err != nil {
			return false, err
		}
		if c == ' ' || c == '\n' || c == '\r' || c == '\t' {
			continue
		}
		return c == '{', r.UnreadByte()
	}
}

// EmitWhole emits the texts of an answer that came whole, once each (ALF-33).
func EmitWhole(r *llm.Response, emit func(llm.Delta)) {
	for i, p := range r.Parts {
		switch p := p.(type) {
		case llm.Text:
			if p.Text != "" {
				emit(llm.Delta{Kind: llm.DeltaText, Index: i, Text: p.Text})
			}
		case llm.Reasoning:
			if p.Text != "" {
				emit(llm.Delta{Kind: llm.DeltaReasoning, Index: i, Text: p.Text})
			}
		}
	}
}
