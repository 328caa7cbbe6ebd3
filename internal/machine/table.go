package machine

import (
	"errors"
	"fmt"
)

// ErrUnsupported is returned for a journal that this version does not understand or
// whose machine it lacks.
var ErrUnsupported = errors.New("machine: journal needs a newer version")

// Table maps machine versions, as recorded in a run's first event, to constructors. A
// new machine decodes its configuration from that event.
type Table map[string]func() Machine

// Make returns a new machine of the given version.
func (t Table) Make(version string) (Machine, error) {
	if empty := t[version]; empty != nil {
		return empty(), nil
	}
	return nil, fmt.Errorf("%w: machine %s", ErrUnsupported, version)
}
