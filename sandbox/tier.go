package sandbox

import "slices"

// Tier is a kind of boundary around commands.
type Tier string

// The tiers.
const (
	// Bubblewrap: namespaces made by bwrap, with a seccomp filter inside.
	Bubblewrap Tier = "bubblewrap"
	// Landlock: Landlock rules and a seccomp filter on an ordinary process.
	Landlock Tier = "landlock"
	// None: no boundary.
	None Tier = "none"
)

// Tiers returns all tiers, the strongest first.
func Tiers() []Tier { return []Tier{Bubblewrap, Landlock, None} }

// AtLeast says that t is as strong as other, or stronger. A tier that nobody
// knows is weaker than all.
func (t Tier) AtLeast(other Tier) bool {
	at := slices.Index(Tiers(), t)
	return at >= 0 && at <= slices.Index(Tiers(), other)
}
