package machine

import (
	"errors"
	"fmt"
)

// ErrUnsupported is returned for a journal that this version does not
// understand, or whose machine it does not have.
var ErrUnsupported = errors.New("machine: journal needs a newer version")

// Table maps each version of a machine, as a run's first event names it, to its
// constructor. A new machine decodes its configuration from that event.
type Table map[string]func() Machine

// Make returns a new machine of a version.
func (t Table) Make(version string) (Machine, error) {
	if empty := t[version]; empty != nil {
		return empty(), nil
	}
	return nil, fmt.Errorf("%w: machine %s", ErrUnsupported, version)
}
