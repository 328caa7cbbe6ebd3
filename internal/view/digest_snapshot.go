package view

// Snapshot returns the state of a digest, except its first event and the results of calls.
// [Restore] reads the view in it, and [RestoreDigest] all of it.
func (d *Digest) Snapshot() []byte {
	c := codec{}
	c.view(&d.View)
	c.digest(d)
	return c.b
}

// RestoreDigest returns the digest of a snapshot, nil if it cannot be read. Started is
// not set.
func RestoreDigest(snapshot []byte) *Digest {
	c, d := codec{b: snapshot, reading: true}, &Digest{}
	d.prepare()
	c.view(&d.View)
	if c.digest(d); c.bad || len(c.b) > 0 {
		return nil
	}
	return d
}

func (c *codec) digest(d *Digest) {
	for _, rare := range []any{&d.Parked, &d.Allowed, &d.Unread, &d.Checkpoints, &d.Compactions, &d.Hooks} {
		c.json(rare)
	}
	text(c, &d.Because)
	at := map[*Entry]int{}
	for i, n := range d.entries {
		at[n] = i
	}
	each(c, &d.cycles, func(l **CycleLine) {
		if c.reading {
			*l = &CycleLine{}
		}
		c.cycle(*l)
		oneAt(c, d.entries, &(*l).entry, at[(*l).entry])
	})
}

func (c *codec) cycle(l *CycleLine) {
	number(c, &l.Cycle)
	c.time(&l.Start)
	text(c, &l.Model)
	text(c, &l.Text)
	each(c, &l.Calls, func(call *string) { text(c, call) })
	rare := len(l.Hooks)+len(l.CacheBreaks) > 0
	if c.flag(&rare); rare {
		c.json(&l.Hooks)
		c.json(&l.CacheBreaks)
	}
	for _, n := range []*int{&l.Errors, &l.Retries} {
		number(c, n)
	}
	number(c, &l.Context)
	number(c, &l.Window)
	c.spent(&l.Own.Used, &l.Own.Cost)
	text(c, &l.Ends)
}
