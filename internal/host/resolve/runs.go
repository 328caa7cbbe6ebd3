package resolve

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
)

const (
	// maxRunFiles bounds the listed files that a line runs.
	maxRunFiles = 20
	// maxRunBytes bounds the size of such a file for computing its digest.
	maxRunBytes = 64 << 20
)

// interpreters matches programs that run the files in their arguments.
var interpreters = newPattern(`^(python|pypy|perl|ruby|php|lua|luajit|node|nodejs|deno|bun|tsx|ts-node|Rscript|julia|awk|gawk|mawk|osascript|pwsh|java|make|gmake)[0-9.]*$`)

// runsFiles records the files of the workspace that a command runs by name: its
// program, the script of a shell or an interpreter, and the shell's input.
func (r *reader) runsFiles(name string, words []word, dirs []string) {
	if strings.Contains(words[0].text, "/") {
		r.runs(words[0], dirs)
	}
	if slices.Contains(shells, name) || name == "." || name == "source" || interpreters.MatchString(name) || name == "go" && len(words) > 1 && words[1].is("run") {
		for _, w := range words[1:] {
			r.runs(w, dirs)
		}
	}
}

// runs records a file of the workspace, if a word names one.
func (r *reader) runs(w word, dirs []string) {
	for _, dir := range dirs {
		if w.computed || w.text == "" || dir == anywhere && !filepath.IsAbs(w.text) {
			continue
		}
		abs := absolute(dir, w.text)
		file := r.ws.PathFrom(dir, w.text)
		if info, err := os.Stat(abs); err != nil || !info.Mode().IsRegular() || file.Outside {
			continue
		}
		if slices.ContainsFunc(r.facts.Runs, func(f event.RunFile) bool { return f.Path == file.Path }) || len(r.facts.Runs) == maxRunFiles {
			continue
		}
		r.facts.Runs = append(r.facts.Runs, event.RunFile{Path: file.Path, Digest: digestOf(abs)})
	}
}

// digestOf returns the SHA-256 of a file's content, "" if it cannot be read.
func digestOf(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	h := sha256.New()
	if n, err := io.Copy(h, io.LimitReader(f, maxRunBytes+1)); err != nil || n > maxRunBytes {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}
