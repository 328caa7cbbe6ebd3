package engine

import "strconv"

// RaiseError is returned for a new value of the limit that a run parked for,
// with which it would only park again. The limit is as it was.
type RaiseError struct {
	Run, Setting string
	// AtLeast is what the limit must be for the run to go on.
	AtLeast float64
}

// Error says what would be enough.
func (e *RaiseError) Error() string {
	return "run " + e.Run + " would park again at once: " + e.Setting + " must be at least " +
		strconv.FormatFloat(e.AtLeast, 'f', -1, 64) + " for the run to continue, or none"
}
