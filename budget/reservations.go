package budget

// held are open reservations, nil for none. It is a value that shares what it
// has in common with those that it came from: to add one to thousands, or to
// remove one, copies a dozen nodes and not all of them. Its shape, and with it
// the order in which it adds up, depends on what it holds and not on how that
// came about.
//
// A node is a leaf with a reservation, or a fork: there the reservations part
// by a bit of their ids' hashes, the first bit at the root.
type held struct {
	hash uint64
	of   Reservation
	// next is another leaf whose id has the same hash, as hardly ever happens.
	next *held

	fork bool
	side [2]*held
	sum  Amount
}

// hashOf is FNV-1a.
func hashOf(id string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(id) {
		h = (h ^ uint64(id[i])) * 1099511628211
	}
	return h
}

// bit is the side of a hash at a fork that is depth forks below the root.
func bit(hash uint64, depth int) int { return int(hash >> (63 - depth) & 1) }

func forkOf(side [2]*held) *held {
	f := &held{fork: true, side: side}
	for _, s := range side {
		f.sum = f.sum.Add(s.total())
	}
	return f
}

// total is the sum of everything that is held.
func (h *held) total() Amount {
	switch {
	case h == nil:
		return Amount{}
	case h.fork:
		return h.sum
	}
	return h.of.Add(h.next.total())
}

func (h *held) find(id string) *Reservation {
	hash := hashOf(id)
	for depth := 0; h != nil && h.fork; depth++ {
		h = h.side[bit(hash, depth)]
	}
	for ; h != nil; h = h.next {
		if h.of.ID == id {
			return &h.of
		}
	}
	return nil
}

// with adds a leaf whose id is not held; h is depth forks below the root.
func (h *held) with(leaf *held, depth int) *held {
	switch {
	case h == nil:
		return leaf
	case !h.fork && h.hash == leaf.hash:
		return &held{hash: h.hash, of: h.of, next: h.next.with(leaf, depth)}
	case !h.fork:
		var side [2]*held
		side[bit(h.hash, depth)] = h
		return forkOf(side).with(leaf, depth)
	}
	side, to := h.side, bit(leaf.hash, depth)
	side[to] = side[to].with(leaf, depth+1)
	return forkOf(side)
}

// without removes what is held under an id; h is depth forks below the root.
func (h *held) without(id string, hash uint64, depth int) *held {
	switch {
	case h == nil || !h.fork && h.of.ID == id:
		return h.rest()
	case !h.fork:
		return &held{hash: h.hash, of: h.of, next: h.next.without(id, hash, depth)}
	}
	side, from := h.side, bit(hash, depth)
	side[from] = side[from].without(id, hash, depth+1)
	if only := side[1-from]; side[from] == nil && (only == nil || !only.fork) {
		return only
	}
	if only := side[from]; side[1-from] == nil && !only.fork {
		return only
	}
	return forkOf(side)
}

// rest is what a leaf holds besides its own.
func (h *held) rest() *held {
	if h == nil {
		return nil
	}
	return h.next
}
