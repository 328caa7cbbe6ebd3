package engine

import (
	"bytes"
	"fmt"

	"github.com/pawlrun/pawl/event"
)

// asStored gives the texts of an event the form that they are stored in. No text
// of JSON holds bytes that are not UTF-8, and a machine that went on with them
// would be another one than whoever resumes the run folds from the journal.
func asStored(s *staged) error {
	if !bytes.Contains(s.body, []byte(`\ufffd`)) { // which is how such a byte is encoded, and a U+FFFD is not
		return nil
	}
	e, err := event.Decode(s.body)
	if err != nil {
		return fmt.Errorf("read back %s, which holds bytes that are not UTF-8: %w", s.event.Type(), err)
	}
	if e.Data, err = reattach(e.Data, s.event.Data); err != nil {
		return fmt.Errorf("read back %s, which holds bytes that are not UTF-8: %w", s.event.Type(), err)
	}
	s.event = *e
	return nil
}
