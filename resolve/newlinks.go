package resolve

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
)

// A command line is judged before it runs, so a link that it makes itself is
// not there yet when its paths are followed: "ln -s ../.. up && echo x > up/y"
// would pass for a write to the workspace. What a line names at or below such a
// link is therefore not known.

// naming is one naming of a path by a command line. step tells the commands and
// redirections of the line apart.
type naming struct {
	path string
	step int
	use  event.PathUse
}

// link is a place where a command of the line may leave a link; replacing: in
// that of a directory, which the line has to take away first.
type link struct {
	path      string
	step      int
	replacing bool
}

// named notes that a path was named, by the absolute name that it was given.
func (r *reader) named(abs string, use event.PathUse) {
	if len(r.namings) == 4*maxFacts {
		r.unclear("it names too many files")
		return
	}
	r.namings = append(r.namings, naming{abs, r.step, use})
}

// makes notes that a link may come to lie at a path.
func (r *reader) makes(abs string, replacing bool) {
	dir, name, _ := cutLast(strings.TrimRight(abs, "/"), "/")
	if name == "." || name == ".." {
		dir, name = abs, ""
	}
	at, _ := follow(dir)
	at = path.Join(at, name)
	if len(r.links) == maxFacts {
		r.unclear("it makes too many links")
		return
	}
	r.links = append(r.links, link{at, r.step, replacing})
}

// throughLinks notes as unknown what is named through a link that another
// command of the line makes, whichever of them stands first: loops and what runs
// in the background have no order.
func (r *reader) throughLinks() {
	if len(r.links) == 0 {
		return
	}
	removes := slices.Index(risks, r.risk) >= slices.Index(risks, event.RiskDelete)
	for _, n := range r.namings {
		through := false
		visit(n.path, func(name string) {
			through = through || slices.ContainsFunc(r.links, func(l link) bool {
				return l.step != n.step && l.path == name && (removes || !l.replacing)
			})
		})
		if through {
			r.unknown(word{text: strings.TrimPrefix(n.path, r.ws.real+"/")}, n.use)
		}
	}
}

// relinks notes the links that a command may leave where it copies to. A
// symbolic link is followed from where it lies, whatever directory it was made
// in.
func (r *reader) relinks(c copying, dirs []string) {
	for _, dir := range dirs {
		if dir == anywhere || c.to.computed {
			continue // that it is not known what is written has been noted
		}
		to := absolute(dir, c.to.text)
		info, err := os.Stat(to)
		inside := err == nil && info.IsDir()
		for _, s := range c.sources {
			if !c.linking && !mayLead(dir, s) {
				continue
			}
			at := to
			if inside && !s.glob {
				at = to + "/" + c.name(s)
				if name := path.Base(to); name != "." && name != ".." {
					r.makes(to, true)
				}
			}
			r.makes(at, false)
			if c.linking && !s.computed && !filepath.IsAbs(s.text) {
				r.path(s, []string{path.Dir(at)}, event.PathUse{Write: true})
			}
		}
	}
}

func absolute(dir, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return dir + "/" + name
}

// maxLooked is how many entries of a directory are looked at for links.
const maxLooked = 4096

// mayLead reports whether what is moved or copied may be a link or have one in
// it, or that nobody can say, because the line makes it first.
func mayLead(dir string, s word) bool {
	name := s.text
	if s.computed {
		before, _, below := cutLast(s.prefix, "/")
		if !s.glob {
			return true
		}
		if name = "."; below {
			name = before + "/"
		}
	}
	looked, errLink := 0, errors.New("a link")
	err := filepath.WalkDir(path.Clean(absolute(dir, name)), func(_ string, e fs.DirEntry, err error) error {
		if looked++; err != nil || looked > maxLooked || e.Type()&fs.ModeSymlink != 0 {
			return errLink
		}
		return nil
	})
	return err != nil
}
