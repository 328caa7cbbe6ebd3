package wiregate

import (
	"net/http"

	"github.com/pawlrun/pawl/llm"
)

// Model is what the gates need of an adapter: streaming and encoding.
type Model interface {
	llm.Streamer
	llm.Encoder
}

// Adapter describes a wire adapter to the gates.
type Adapter struct {
	// API is the wire format as the fixtures name it ("anthropic-messages").
	API string
	// Provider is the first half of target names ("anthropic"). Messages that
	// the gates build carry it in their origin.
	Provider string
	// New makes a model that talks to baseURL, a bare scheme and host.
	New func(baseURL string, client *http.Client) Model
	// Parse says what a request body of this wire means: system text, tools,
	// messages. It is the test's own reading, independent of the encoder.
	// Assistant messages need no origin.
	Parse func(body []byte) (llm.Request, error)
	// ItemType is the provider's word for a part of an answer, as item_order
	// of the fixtures has it. "" leaves the part out of the comparison; equal
	// neighbours are not merged.
	ItemType func(llm.Part) string
	// MergeNeighbours says that the recorders counted a text once for every
	// chunk it came in, so that equal neighbours in the order are one part.
	MergeNeighbours bool
	// Vary, where set, adapts the description to a scenario: the service that
	// it was recorded from may have habits of its own.
	Vary func(a Adapter, s *Scenario) Adapter
}

// of is the description as it applies to a scenario.
func (a Adapter) of(s *Scenario) *Adapter {
	if a.Vary != nil {
		a = a.Vary(a, s)
	}
	return &a
}

// origin is the target name of a model behind this adapter.
func (a *Adapter) origin(model string) string { return a.Provider + "/" + model }
