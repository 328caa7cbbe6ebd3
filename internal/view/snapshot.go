package view

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/llm"
)

// SnapshotVersion is the version of this package's folds and of their snapshots. It
// changes with every change of what a view contains for the same events; a test of
// recorded runs demands it.
const SnapshotVersion = "2"

// Snapshot returns the state of a view, which [Restore] reads. It is disposable: the
// events give the same view.
func (v *View) Snapshot() []byte {
	c := codec{}
	c.view(v)
	return c.b
}

// Restore returns the view of a snapshot, also of a digest's, nil if it cannot be read.
func Restore(snapshot []byte) *View {
	c, v := codec{b: snapshot, reading: true}, &View{}
	v.prepare()
	if c.view(v); c.bad {
		return nil
	}
	for _, r := range v.runs {
		r.withoutTexts()
	}
	return v
}

// codec writes values one behind the other, or reads them in the same order, so that one
// function describes both directions.
type codec struct {
	b            []byte
	reading, bad bool
}

func (c *codec) bytes(v []byte) []byte {
	if !c.reading {
		c.b = append(binary.AppendUvarint(c.b, uint64(len(v))), v...)
		return v
	}
	n, size := binary.Uvarint(c.b)
	if size <= 0 || n > uint64(len(c.b)-size) {
		c.b, c.bad = nil, true
		return nil
	}
	v, c.b = c.b[size:size+int(n)], c.b[size+int(n):]
	return v
}

func text[T ~string](c *codec, v *T) {
	if got := c.bytes([]byte(*v)); c.reading {
		*v = T(got)
	}
}

func number[T ~int | ~int64](c *codec, v *T) {
	if !c.reading {
		c.b = binary.AppendVarint(c.b, int64(*v))
		return
	}
	n, size := binary.Varint(c.b)
	if size <= 0 {
		c.b, c.bad = nil, true
		return
	}
	*v, c.b = T(n), c.b[size:]
}

func (c *codec) flag(v *bool) {
	n := 0
	if *v {
		n = 1
	}
	number(c, &n)
	*v = n == 1
}

func (c *codec) float(v *float64) {
	n := int64(math.Float64bits(*v))
	number(c, &n)
	*v = math.Float64frombits(uint64(n))
}

func (c *codec) time(v *time.Time) {
	b, err := v.MarshalBinary()
	if b = c.bytes(b); c.reading && !c.bad {
		err = v.UnmarshalBinary(b)
	}
	c.bad = c.bad || err != nil
}

// json encodes rare values.
func (c *codec) json(v any) {
	var b []byte
	var err error
	if !c.reading {
		b, err = json.Marshal(v)
	}
	if b = c.bytes(b); c.reading && !c.bad {
		err = json.Unmarshal(b, v)
	}
	c.bad = c.bad || err != nil
}

// each encodes the elements of a list.
func each[T any](c *codec, list *[]T, element func(*T)) {
	n := len(*list)
	if number(c, &n); n < 0 || c.reading && n > len(c.b) { // an element takes a byte or more
		c.b, c.bad = nil, true
		return
	}
	if c.reading && n > 0 {
		*list = make([]T, n)
	}
	for i := range *list {
		element(&(*list)[i])
	}
}

// one encodes a pointer to an element of a list, by its index.
func one[T any](c *codec, list []*T, v **T) {
	i := slices.Index(list, *v)
	oneAt(c, list, v, i)
}

func oneAt[T any](c *codec, list []*T, v **T, i int) {
	switch number(c, &i); {
	case !c.reading || i == -1:
	case i < 0 || i >= len(list):
		c.bad = true
	default:
		*v = list[i]
	}
}

func (c *codec) view(v *View) {
	at := map[*Entry]int{nil: -1}
	for i, n := range v.entries {
		at[n] = i
	}
	entry := func(n **Entry) { oneAt(c, v.entries, n, at[*n]) }
	each(c, &v.entries, func(n **Entry) { c.entry(v, n) })
	if c.reading {
		v.found()
	}
	changed := v.changed()
	each(c, &changed, func(n **Entry) { entry(n) })
	if c.reading && !c.bad {
		for _, n := range changed {
			v.changes = append(v.changes, change{n.Seq, n})
		}
	}
	if c.reading {
		v.Steps.byID = map[string]*StepLine{}
	}
	c.steps(&v.Steps)
	c.json(&v.Account)
	c.flag(&v.defaultCap)
	c.json(&v.going)
	c.json(&v.windows)
	c.fields(&v.run)
	c.whole(v, entry)
	c.json(&v.kept)
	c.json(&v.open)
	c.json(&v.waiting)
	c.json(&v.position)
	entry(&v.cycle)
	text(c, &v.last)
	each(c, (*[]OpenQuestion)(&v.questions), func(q *OpenQuestion) {
		text(c, &q.ID)
		c.flag(&q.Message)
	})
}

// entry encodes an entry, with the numbers of its events.
func (c *codec) entry(v *View, n **Entry) {
	if c.reading {
		*n = &Entry{}
	}
	c.fields(*n)
	events, last := v.events[(*n).ID], int64(0)
	each(c, &events, func(seq *int64) {
		since := *seq - last
		number(c, &since)
		last += since
		*seq = last
	})
	if c.reading {
		v.events[(*n).ID] = events
	}
}

func (c *codec) fields(n *Entry) {
	for _, s := range []*string{&n.ID, (*string)(&n.Kind), &n.Parent, &n.Name, (*string)(&n.State), &n.Line, &n.Run, &n.Ref} {
		text(c, s)
	}
	number(c, &n.Below)
	number(c, &n.Failures)
	c.time(&n.Start)
	c.float(&n.Seconds)
	c.spent(&n.Usage, &n.Cost)
	number(c, &n.Seq)
}

func (c *codec) spent(u *llm.Usage, cost **llm.Cost) {
	known := *cost != nil || *u != llm.Usage{}
	if c.flag(&known); !known {
		return
	}
	for _, n := range []*int64{&u.Input, &u.Output, &u.CacheRead, &u.CacheWrite, &u.Reasoning, &u.CacheWriteLong} {
		number(c, n)
	}
	c.flag(&u.Estimated)
	priced := *cost != nil
	if c.flag(&priced); priced {
		if c.reading {
			*cost = &llm.Cost{}
		}
		c.float(&(*cost).USD)
		c.flag(&(*cost).Priced)
	}
}

// found finds the entries of a snapshot by their ids and references.
func (v *View) found() {
	for _, n := range v.entries {
		v.byID[n.ID] = n
		v.below[n.Parent] = append(v.below[n.Parent], n)
		switch n.Kind {
		case Call:
			v.calls[n.Ref] = n
		case Question:
			v.asked[n.Ref] = n
		case Iteration:
			v.steps[n.Ref], v.steps[above(n.Ref)+passes] = n, n
		case Step:
			v.steps[n.Ref] = n
		}
	}
}

// changed returns the entries in the order of their last change.
func (v *View) changed() (entries []*Entry) {
	for _, c := range v.changes {
		if c.entry.Seq == c.seq {
			entries = append(entries, c.entry)
		}
	}
	return entries
}

func (c *codec) steps(s *Steps) {
	each(c, &s.Lines, func(l **StepLine) {
		if c.reading {
			*l = &StepLine{}
		}
		c.line(*l)
		if c.reading {
			s.byID[(*l).Step] = *l
		}
	})
	c.json(&s.begun)
	c.json(&s.failing)
	c.time(&s.Now)
	c.json(&s.printed)
	text(c, &s.last)
	refines := s.Ledger != nil
	if c.flag(&refines); !refines {
		return
	}
	if c.reading {
		s.Ledger = &Ledger{}
	}
	each(c, &s.Ledger.Lines, func(l **IterationLine) {
		if c.reading {
			*l = &IterationLine{}
		}
		c.json(*l)
		c.spent(&(*l).Used, &(*l).Cost)
	})
	c.json(&s.Ledger.commands)
	number(c, &s.Ledger.Of)
}

func (c *codec) line(l *StepLine) {
	c.json(l)
	c.spent(&l.Used, &l.Cost)
	number(c, &l.Depth)
	c.time(&l.started)
	number(c, &l.parked)
	number(c, &l.redo)
	loops := l.loop != nil
	if c.flag(&loops); !loops {
		return
	}
	loop := plan.Loop{}
	if !c.reading {
		loop = *l.loop
	}
	items := loop.Items != nil
	c.flag(&items)
	number(c, &loop.Max)
	if c.reading {
		if l.loop = &loop; items {
			loop.Items = &plan.Items{}
		}
	}
}

func (c *codec) whole(v *View, entry func(**Entry)) {
	// A step names its run before that has started.
	started, all := len(v.children), slices.Clip(v.children)
	if len(v.runs) > started {
		named := maps.Clone(v.runs)
		for _, r := range v.children {
			delete(named, r.Run)
		}
		all = append(all, slices.SortedFunc(maps.Values(named), func(a, b *ChildRun) int { return cmp.Compare(a.Run, b.Run) })...)
	}
	number(c, &started)
	each(c, &all, func(r **ChildRun) {
		if c.reading {
			*r = &ChildRun{}
		}
		c.child(v, *r, entry)
		if c.reading {
			v.runs[(*r).Run] = *r
		}
	})
	if c.bad || started > len(all) {
		c.bad = true
		return
	}
	if c.reading && started > 0 {
		v.children = all[:started:started]
	}
	each(c, &v.parked, func(r **ChildRun) { one(c, all, r) })
	steps := slices.Sorted(maps.Keys(v.ofStep))
	at := map[*ChildRun]int{}
	for i, r := range all {
		at[r] = i
	}
	each(c, &steps, func(step *string) {
		text(c, step)
		r := v.ofStep[*step]
		if oneAt(c, all, &r, at[r]); c.reading {
			v.ofStep[*step] = r
		}
	})
	c.json(&v.inherited)
	c.json(&v.skipped)
	c.json(&v.atLimit)
}

func (c *codec) child(v *View, r *ChildRun, entry func(**Entry)) {
	for _, s := range []*string{&r.Run, &r.Name, &r.CallID, &r.Step, &r.Of} {
		text(c, s)
	}
	for _, rare := range []struct {
		given bool
		value any
	}{{r.Finished != nil, &r.Finished}, {r.Parked != nil, &r.Parked}, {r.Outcome != nil, &r.Outcome}} {
		if c.flag(&rare.given); rare.given {
			c.json(rare.value)
		}
	}
	c.spent(&r.Used, &r.Cost)
	entry(&r.entry)
	if one(c, v.Steps.Lines, &r.line); v.Steps.Ledger != nil {
		one(c, v.Steps.Ledger.Lines, &r.pass)
	}
}
