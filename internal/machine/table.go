package machine

import (
	"errors"
	"fmt"
)

// ErrUnsupported is returned for a journal that another version wrote in a way
// that this one does not understand, or of a machine that it does not have.
var ErrUnsupported = errors.New("machine: journal needs a newer version")

// Table says for each version of a machine, as a run's first event names it, how
// an empty one is made. An empty machine decodes its configuration from that event.
type Table map[string]func() Machine

// Make returns an empty machine of a version.
func (t Table) Make(version string) (Machine, error) {
	if empty := t[version]; empty != nil {
		return empty(), nil
	}
	return nil, fmt.Errorf("%w: machine %s", ErrUnsupported, version)
}
