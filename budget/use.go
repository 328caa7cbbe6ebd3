package budget

// Use is how much of a limit a run has used.
type Use struct {
	Setting string `json:"setting"`
	// Unit is what the limit counts, as in "3 of 5 cycles"; "" for money and time, which
	// are in US dollars and in seconds.
	Unit  string  `json:"unit,omitempty"`
	Used  float64 `json:"used"`
	Limit float64 `json:"limit"`
}

// Uses returns how much of each limit that bounds a whole run is used, in the order in
// which limits are listed. A limit that is not set is left out.
func (l Limits) Uses(s Spent) (uses []Use) {
	for i := range settings {
		x := &settings[i]
		if x.used == nil || x.Kind == Each || x.of(l) <= 0 {
			continue
		}
		uses = append(uses, Use{x.Name, x.Unit, x.used(s), x.of(l)})
	}
	return uses
}
