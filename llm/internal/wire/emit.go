package wire

import "github.com/pawlrun/pawl/llm"

// EmitResponse emits the texts of a whole answer, once each.
func EmitResponse(r *llm.Response, emit func(llm.Delta)) {
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
