package compact

import (
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// Fate is the effect of a compaction on one message.
type Fate string

// The fates of a message.
const (
	Stayed Fate = "stayed"
	Left   Fate = "left"
	// Shortened means that the message stays, but some of its results are shorter.
	Shortened Fate = "shortened"
)

// Fates returns the effect of a compaction on each message of the conversation before
// it. It returns an error if d does not match the conversation.
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
