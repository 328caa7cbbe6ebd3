package journal

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/pawlrun/pawl/event"
)

// Verified is the result of checking a run's journal.
type Verified struct {
	Run string `json:"run"`
	// Events is the number of events of the chain, Head the hash of the last.
	Events int64  `json:"events"`
	Head   string `json:"head"`
	// HeadSeq is the number of the event that the head given by the caller belongs
	// to; the events after it are covered only by the chain. It is 0 without a
	// head.
	HeadSeq int64 `json:"headSeq,omitempty"`
	// Blobs counts the contents that the events refer to, each with a matching
	// digest.
	Blobs int `json:"blobs,omitempty"`
}

// verifyPage is how many events are read at once.
const verifyPage = 500

// Verify reads a run's journal from the first event to the last and checks it:
// numbers without gaps, the run's id in every event, the hash of each event in
// the next one and of the last one in the run's row. It also checks the rest of
// the row against the events, except for the holder of the lease, which no
// event records, and the times, which older versions wrote differently. Nothing
// may follow the run's end. Every content that an event refers to must exist
// and match its digest.
//
// The chain alone finds accidental changes and simple edits. Someone who
// rewrites the end of a journal can also rewrite its hashes. To find that, pass
// head, the hash of an event that was noted elsewhere (the last one's is
// printed at the end of a run). An empty head skips this check.
//
// A fork is read from the first event of the run that it shares: the chain
// includes all its ancestors.
//
// The error is a [*CorruptError] for a journal that was changed, and
// [ErrNotFound] for a run that does not exist.
func Verify(ctx context.Context, s Store, run, head string) (Verified, error) {
	row, err := s.Run(ctx, run)
	if err != nil {
		return Verified{}, fmt.Errorf("journal: verify run %s: %w", run, err)
	}
	// Records may follow during the check; the end is what the row says.
	c := chain{run: run, wanted: head, row: row}
	if c.line, err = Lineage(ctx, s, run); err != nil {
		return c.verified(), c.strayed(ctx, s, err)
	}
	for c.seq < row.Seq {
		records, err := s.Records(ctx, run, c.seq, int(min(verifyPage, row.Seq-c.seq)))
		// The records before an error may be damaged first.
		for _, r := range records {
			if err := c.add(r); err != nil {
				return c.verified(), err
			}
		}
		if err != nil && !errors.Is(err, ErrNotFound) {
			return c.verified(), fmt.Errorf("journal: verify run %s: %w", run, err)
		}
		if len(records) == 0 {
			return c.verified(), c.missing(ctx, s)
		}
	}
	err = c.finish(ctx, s, row)
	return c.verified(), err
}

// chain is a pass over a run's events.
type chain struct {
	run     string
	wanted  string
	line    []Stretch
	row     Run
	seq     int64
	head    string
	headSeq int64
	// account is the run's row according to its events.
	account account
	// refs holds the first event that refers to each digest, in order; blobs counts the
	// intact contents.
	refs  []blobAt
	seen  map[string]bool
	blobs int
}

type blobAt struct {
	digest string
	seq    int64
}

func (c *chain) verified() Verified {
	return Verified{Run: c.run, Events: c.seq, Head: c.head, HeadSeq: c.headSeq, Blobs: c.blobs}
}

func (c *chain) damage(seq int64, what, want, got string) error {
	return &CorruptError{Run: c.run, Seq: seq, What: what, Want: want, Got: got}
}

// add checks the next record.
func (c *chain) add(r Record) error {
	next := c.seq + 1
	if r.Seq != next {
		return c.damage(next, "the event is missing", num(next), num(r.Seq))
	}
	e, err := event.Decode(r.Body)
	if err != nil {
		return c.damage(next, "it cannot be read: "+err.Error(), "", "")
	}
	hash := event.Hash(r.Body)
	switch {
	case e.Run != ownerOf(c.line, next):
		return c.damage(next, "it belongs to another run", ownerOf(c.line, next), e.Run)
	case e.Seq != next:
		return c.damage(next, "it carries another number", num(next), num(e.Seq))
	case string(e.Type()) != r.Type:
		return c.damage(next, "it is filed under another type", string(e.Type()), r.Type)
	case e.Prev != c.head && next == 1:
		return c.damage(next, "it is not the run's first event", "", e.Prev)
	case e.Prev != c.head:
		// It is unknown which of the two was changed.
		return c.damage(next-1, fmt.Sprintf("its hash is not the one that event %d carries", next), e.Prev, c.head)
	case c.account.outcome != nil:
		return c.damage(next, "it follows the end of the run", "", string(e.Type()))
	}
	if err := c.checkFork(next, e.Data); err != nil {
		return err
	}
	c.seq, c.head = next, hash
	c.account.add(e, e.Run == c.run)
	c.refer(e)
	if c.wanted == hash {
		c.headSeq = next
	}
	return nil
}

// checkFork compares the first own event of a fork with the run's row: it names what
// the fork shares.
func (c *chain) checkFork(seq int64, data event.Data) error {
	d, forks := data.(event.RunForked)
	switch {
	case c.row.ForkOf == "" || seq != c.row.ForkSeq+1:
		return nil
	case !forks:
		return c.damage(seq, "it does not say that the run is a fork", string(event.TypeRunForked), string(data.EventType()))
	case d.From != c.row.ForkOf || d.Seq != c.row.ForkSeq:
		return c.damage(seq, "it names another fork than the run's row", at(c.row.ForkOf, c.row.ForkSeq), at(d.From, d.Seq))
	case d.Hash != c.head:
		return c.damage(seq, "it names another event to go on from", c.head, d.Hash)
	}
	return nil
}

// strayed explains that runs which a fork is based on are incomplete: they cannot be
// deleted before it.
func (c *chain) strayed(ctx context.Context, s Store, err error) error {
	now, gone := s.Run(ctx, c.run)
	if errors.Is(err, ErrNotFound) && gone == nil && now.ForkOf != "" {
		return c.damage(0, "a run whose events it shares is missing", now.ForkOf, "")
	}
	return fmt.Errorf("journal: verify run %s: %w", c.run, err)
}

func at(run string, seq int64) string { return run + " at " + num(seq) }

// refer records what an event refers to.
func (c *chain) refer(e *event.Event) {
	for _, r := range event.Blobs(e.Data) {
		if c.seen[r.Digest] {
			continue
		}
		if c.seen == nil {
			c.seen = map[string]bool{}
		}
		c.seen[r.Digest] = true
		c.refs = append(c.refs, blobAt{r.Digest, e.Seq})
	}
}

// contents checks the contents that the events refer to.
func (c *chain) contents(ctx context.Context, s Store) error {
	for _, r := range c.refs {
		content, err := s.Blob(ctx, r.digest)
		if errors.Is(err, ErrNotFound) {
			if _, err := s.Run(ctx, c.run); err != nil {
				return fmt.Errorf("journal: verify run %s: %w", c.run, err)
			}
			return c.damage(r.seq, "the content that it refers to is missing", r.digest, "")
		}
		if err != nil {
			return fmt.Errorf("journal: verify run %s: %w", c.run, err)
		}
		if got := Digest(content); got != r.digest {
			return c.damage(r.seq, "the content that it refers to was altered", r.digest, got)
		}
		c.blobs++
	}
	return nil
}

// missing explains a missing event: it is gone, or the whole run was deleted while it
// was being read.
func (c *chain) missing(ctx context.Context, s Store) error {
	if _, err := s.Run(ctx, c.run); err != nil {
		return fmt.Errorf("journal: verify run %s: %w", c.run, err)
	}
	return c.damage(c.seq+1, "the event is missing", "", "")
}

// finish compares the end of the chain with the row and the caller's head.
func (c *chain) finish(ctx context.Context, s Store, row Run) error {
	if c.head != row.Head {
		return c.damage(c.seq, "its hash is not the one in the run's row", row.Head, c.head)
	}
	if f := c.account.check(row); f != (fault{}) {
		return c.damage(0, f.what, f.want, f.got)
	}
	if c.wanted != "" && c.headSeq == 0 {
		return c.damage(c.seq, "no event has the given head: the journal was rewritten, or the head is of another run", c.wanted, c.head)
	}
	if err := c.surplus(ctx, s, row); err != nil {
		return err
	}
	return errors.Join(c.losses(ctx, s), c.contents(ctx, s))
}

// surplus looks for events after the last one in the run's row. A driver that appended
// meanwhile has also updated the row.
func (c *chain) surplus(ctx context.Context, s Store, row Run) error {
	more, err := s.Records(ctx, c.run, c.seq, 1)
	if err != nil || len(more) == 0 {
		return err
	}
	now, err := s.Run(ctx, c.run)
	if err != nil {
		return fmt.Errorf("journal: verify run %s: %w", c.run, err)
	}
	if now.Seq == row.Seq {
		return c.damage(more[0].Seq, "the run's row does not know of it", num(row.Seq)+" events", num(more[0].Seq))
	}
	return nil
}

func num(n int64) string { return strconv.FormatInt(n, 10) }
