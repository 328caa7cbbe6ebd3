package agent

import (
	"hash/fnv"
	"slices"
	"strings"
)

// novelty remembers what the run brought forth lately, so that time in which
// nothing new comes can be told from progress.
type novelty struct {
	recent []uint64
	next   int
}

// memory is how many results and texts are remembered: a run that goes round in
// a circle of fewer makes no progress.
const memory = 64

// add takes in what came, and reports whether it was not there before.
func (n *novelty) add(kind, content string) (news bool) {
	if strings.TrimSpace(content) == "" {
		return false
	}
	h := fingerprint(kind, content)
	if slices.Contains(n.recent, h) {
		return false
	}
	if len(n.recent) < memory {
		n.recent = append(n.recent, h)
	} else {
		n.recent[n.next%memory] = h
		n.next++
	}
	return true
}

// gotOn takes it from the journal that the run went on. Nobody asks a model when
// the time without progress is over, but older versions took what came of a call
// that outlasted it for progress.
func (r *run) gotOn() {
	if r.cfg.Limits.Stalled(r.Spent) {
		r.Spent.Idle = 0
	}
}

func fingerprint(kind, content string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(kind))
	h.Write([]byte{0})
	h.Write([]byte(content))
	return h.Sum64()
}
