package sandbox

import "slices"

// Tier is a kind of boundary around commands.
type Tier string

// The tiers.
const (
	// Bubblewrap: namespaces created by bwrap, with a seccomp filter inside.
	Bubblewrap Tier = "bubblewrap"
	// Namespaces: namespaces created by this program itself, with Landlock rules and a
	// seccomp filter inside.
	Namespaces Tier = "namespaces"
	// Landlock: Landlock rules and a seccomp filter on an ordinary process.
	Landlock Tier = "landlock"
	// None: no boundary.
	None Tier = "none"
)

// Tiers returns all tiers, the strongest first.
func Tiers() []Tier { return []Tier{Bubblewrap, Namespaces, Landlock, None} }

// AtLeast reports whether t is at least as strong as other. An unknown tier is the
// weakest.
func (t Tier) AtLeast(other Tier) bool {
	at := slices.Index(Tiers(), t)
	return at >= 0 && at <= slices.Index(Tiers(), other)
}

// mounts reports whether commands of a tier have a separate file system and separate
// processes.
func (t Tier) mounts() bool { return t == Bubblewrap || t == Namespaces }
