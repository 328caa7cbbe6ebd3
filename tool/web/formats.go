package web

import "golang.org/x/net/html/atom"

// formatting are the elements that only change how text looks. HTML goes on with
// those that were not closed in whatever follows, until their end tag comes.
var formatting = of(atom.B, atom.Big, atom.Code, atom.Em, atom.Font, atom.I, atom.Nobr, atom.S, atom.Small, atom.Strike, atom.Strong, atom.Tt, atom.U)

// formats are the formatting elements that are open in one place.
type formats struct {
	open map[atom.Atom][]format
	// hiding counts those that hide what comes after them.
	hiding int
	// linked says that a link is open, linkHides that it is hidden.
	linked, linkHides bool
}

// format stands for so many elements of one name that were opened one after the
// other.
type format struct {
	hides bool
	count uint32
}

func (f *formats) begin(a atom.Atom, hides bool) {
	if f.open == nil {
		f.open = map[atom.Atom][]format{}
	}
	all := f.open[a]
	if last := len(all) - 1; last < 0 || all[last].hides != hides {
		all = append(all, format{hides: hides})
	}
	all[len(all)-1].count++
	f.open[a] = all
	if hides {
		f.hiding++
	}
}

func (f *formats) end(a atom.Atom) {
	all := f.open[a]
	last := len(all) - 1
	if last < 0 {
		return
	}
	if all[last].hides {
		f.hiding--
	}
	if all[last].count--; all[last].count == 0 {
		f.open[a] = all[:last]
	}
}
