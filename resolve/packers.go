package resolve

import (
	"os"
	"strings"

	"github.com/pawlrun/pawl/event"
)

// packers are the programs that take all that lies below a directory which they
// are given.
var packers = []string{"tar", "gtar", "bsdtar", "zip", "7z", "7za", "7zz", "pax", "rsync", "scp", "ag", "ack"}

// tarPacks are the words by which tar reads files instead of an archive, and
// tarMode is the first one without its "-".
var (
	tarPacks = newPattern(`^(-[A-Za-z]*[cruA][A-Za-z]*|--(cr|app|upd|cat|conc)[a-z]*)$`)
	tarMode  = newPattern(`^[A-Za-z]*[cruA][A-Za-z]*$`)
)

// unpacks reports whether tar only reads an archive. Others say it by what they are
// given.
func unpacks(name string, args []word) bool {
	if !strings.HasSuffix(name, "tar") || len(args) == 0 || tarMode.MatchString(args[0].text) {
		return false
	}
	for _, a := range args {
		if a.computed || tarPacks.MatchString(a.text) {
			return false
		}
	}
	return true
}

// packed notes the trees below the directories that a program is given.
func (r *reader) packed(args []word, dirs []string) {
	for _, a := range args {
		if a.glob {
			r.path(a, dirs, event.PathUse{Tree: true})
		}
		if a.computed || strings.HasPrefix(a.text, "-") {
			continue
		}
		for _, dir := range dirs {
			info, err := os.Stat(absolute(dir, a.text))
			if dir == anywhere || err == nil && info.IsDir() {
				r.path(a, []string{dir}, event.PathUse{Tree: true})
			}
		}
	}
}
