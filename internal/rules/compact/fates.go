package compact

import (
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// Fate is what became of one message in a compaction.
type Fate string

// The fates of a message.
const (
	Stayed Fate = "stayed"
	Left   Fate = "left"
	// Shortened: it is still there, with less in some of its results.
	Shortened Fate = "shortened"
)

// Fates says what a compaction did to each message of the conversation before
// it. An error means that the event is not about this conversation.
func Fates(messages []*llm.Message, d event.HistoryCompressed) ([]Fate, error) {
	if err := checkRanges(d.Removed, len(messages)); err != nil {
		return nil, err
	}
	short := shortened(messages, d)
	fates := make([]Fate, len(messages))
	for i, m := range messages {
		fates[i] = Stayed
		if short[i] != m {
			fates[i] = Shortened
		}
	}
	for _, r := range d.Removed {
		for i := r.From; i < r.To; i++ {
			fates[i] = Left
		}
	}
	return fates, nil
}
