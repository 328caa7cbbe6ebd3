package journal

import "context"

// Loss is an event that a store acknowledged and lost afterwards, together with those
// before it that the run lacks too.
type Loss struct {
	Run string `json:"run"`
	// Seq is the number of the newest lost event of the run, and Head its hash.
	Seq  int64  `json:"seq"`
	Head string `json:"head"`
	// Pos is its position in the log.
	Pos int64 `json:"pos"`
}

// RecordsLosses is implemented by stores whose processes notice that acknowledged events
// were lost, for example in a failover to a standby that lacked them.
type RecordsLosses interface {
	// Losses returns the recorded losses of a run.
	Losses(ctx context.Context, run string) ([]Loss, error)
}

// losses reports an event of the run that the store acknowledged and lost.
func (c *chain) losses(ctx context.Context, s Store) error {
	records, ok := s.(RecordsLosses)
	if !ok {
		return nil
	}
	lost, err := records.Losses(ctx, c.run)
	if err != nil || len(lost) == 0 {
		return err
	}
	return c.damage(lost[0].Seq, "it was acknowledged at position "+num(lost[0].Pos)+", and the database lost it", lost[0].Head, "")
}
