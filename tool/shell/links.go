package shell

import (
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/sandbox"
)

// withOtherNames adds the protected names that a file has besides the one by
// which a command writes it, or gives it to a program (hard links): what
// happens to the one happens to the other. File tools need none of this,
// because they put a new file in the place of the old one. Where the owner asks
// before a command so much as reads what is protected, the names of what it
// reads count as well.
func (o Options) withOtherNames(facts event.Facts) event.Facts {
	others := sandbox.NewOtherNames(o.Dir, o.Protected)
	for _, p := range slices.Clone(facts.Paths) {
		changes := p.Write || p.Given
		if !changes && !o.GateReads || p.Unknown || p.Outside || p.Alias || p.Pattern {
			continue
		}
		names, err := others.Of(p.Path, !changes && p.Tree)
		if err != nil {
			facts.Unclear = append(facts.Unclear, "whether "+p.Path+" is another name of something protected is not known")
		}
		for _, name := range names {
			use := event.PathUse{Path: name, Write: p.Write, Given: p.Given}
			if !slices.Contains(facts.Paths, use) {
				facts.Paths = append(facts.Paths, use)
			}
		}
	}
	return facts
}
