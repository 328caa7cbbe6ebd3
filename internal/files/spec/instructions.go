package spec

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/files/decode"
)

// maxInstructions bounds the texts of all instructions together, in bytes: each request
// contains them.
const maxInstructions = 256 << 10

// readInstructions adds the texts of the files in Instructions to System. They are the
// owner's texts because the agent file names them; their variables are not expanded.
func (a *Agent) readInstructions(r *decode.Report) {
	size := 0
	for i, name := range a.Instructions {
		at := fmt.Sprintf("instructions[%d]", i)
		if name == "" {
			if !r.Reported(at) {
				r.At(at, "the path of a text, relative to the agent file", "is empty")
			}
			continue
		}
		data, err := decode.ReadFile(PathIn(a.Dir, name))
		switch size += len(data); {
		case err != nil:
			r.At(at, "the path of a text, relative to the agent file", "cannot be read: %v", err)
			continue
		case !utf8.Valid(data):
			r.At(at, "a text in UTF-8", "%s is not UTF-8", name)
			continue
		case size > maxInstructions:
			r.At(at, "at most 256 KiB of instructions", "makes it %d bytes", size)
			continue
		}
		text := strings.TrimSpace(strings.TrimPrefix(string(data), "\ufeff"))
		a.System = strings.TrimSpace(a.System + "\n\n## " + name + "\n\n" + strings.ReplaceAll(text, "${", "$${"))
		a.Texts = append(a.Texts, event.TextFile{Path: name, Digest: fmt.Sprintf("sha256:%x", sha256.Sum256(data))})
	}
}
