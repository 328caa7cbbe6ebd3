package spec

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/host/guidance"
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

// readSkills reads the heads of the skills in the directories of Skills.
func (a *Agent) readSkills(r *decode.Report) {
	const want = "the path of a directory with skills, relative to the agent file"
	a.SkillFiles = nil
	for i, name := range a.Skills {
		at := fmt.Sprintf("skills[%d]", i)
		if name == "" {
			if !r.Reported(at) {
				r.At(at, want, "is empty")
			}
			continue
		}
		found, err := guidance.Skills(PathIn(a.Dir, name))
		if err != nil {
			r.At(at, want, "cannot be used: %v", err)
			continue
		}
		for _, s := range found {
			if slices.ContainsFunc(a.SkillFiles, func(other event.SkillFile) bool { return other.Name == s.Name }) {
				r.At(at, "skills with different names", "has a second skill %s", s.Name)
				continue
			}
			a.SkillFiles = append(a.SkillFiles, s)
		}
	}
}
