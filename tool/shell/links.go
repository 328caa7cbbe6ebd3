package shell

import (
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/sandbox"
)

// withOtherNames adds the protected names of a file that a command writes, or passes to
// a program, under another name (hard links), because a change applies to all names.
// File tools do not need this, because they replace the file under one name. If the
// owner requires a question before a command reads a protected file, the other names of
// files that it reads count too.
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
