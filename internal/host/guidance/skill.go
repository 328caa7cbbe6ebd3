package guidance

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/pawlrun/pawl/event"
)

// skillFile is the file of a skill in its directory.
const skillFile = "SKILL.md"

// maxDescription bounds the description of a skill, in characters.
const maxDescription = 1024

// skillName matches the name of a skill.
var skillName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)

// Skills returns the skills in the directories of a directory that its owner named. A
// problem of one is an error.
func Skills(dir string) ([]event.SkillFile, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	opened, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	names, err := opened.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	f := Found{Root: dir}
	f.addSkills(root, ".")
	switch {
	case len(f.Notes) > 0:
		return nil, errors.New(f.Notes[0])
	case len(f.Skills) == 0:
		return nil, fmt.Errorf("has no directory with a %s among its %d entries", skillFile, len(names))
	}
	for i := range f.Skills {
		if f.Skills[i].Path, err = filepath.Abs(f.Skills[i].Path); err != nil {
			return nil, err
		}
	}
	return f.Skills, nil
}

// TextOf returns the text of a skill, if it is still the one that the run began with.
func TextOf(s event.SkillFile) (string, error) {
	root, err := os.OpenRoot(filepath.Dir(s.Path))
	if err != nil {
		return "", err
	}
	defer root.Close()
	data, err := read(root, filepath.Base(s.Path), maxText)
	if err != nil {
		return "", err
	}
	if digest(data) != s.Digest {
		return "", errors.New("it has changed since the run began; a new session uses it after its user agreed to it")
	}
	return string(data), nil
}

// readSkill reads the head of a skill.
func readSkill(root *os.Root, file string) (event.SkillFile, error) {
	data, err := read(root, file, maxText)
	if err != nil {
		return event.SkillFile{}, err
	}
	s, err := parse(string(data))
	if err == nil && s.Name != path.Base(path.Dir(file)) {
		err = fmt.Errorf("its name is %q, which is not that of its directory", s.Name)
	}
	s.Digest = digest(data)
	return s, err
}

// parse returns the name and description in the head of a skill.
func parse(text string) (event.SkillFile, error) {
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	rest, begins := strings.CutPrefix(text, "---\n")
	head, _, ends := strings.Cut(rest, "\n---")
	if !begins || !ends {
		return event.SkillFile{}, errors.New("it has no head with a name and a description between two lines of ---")
	}
	var h struct {
		Name        string `yaml:"name"`
		Description string `yaml:"description"`
	}
	if err := yaml.Unmarshal([]byte(head), &h); err != nil {
		return event.SkillFile{}, fmt.Errorf("its head is no YAML: %w", err)
	}
	description := strings.Join(strings.Fields(h.Description), " ")
	switch {
	case !skillName.MatchString(h.Name):
		return event.SkillFile{}, fmt.Errorf("its name is %q; it must be lower-case letters, digits and hyphens", h.Name)
	case description == "":
		return event.SkillFile{}, errors.New("it has no description")
	case utf8.RuneCountInString(description) > maxDescription:
		return event.SkillFile{}, fmt.Errorf("its description has more than %d characters", maxDescription)
	}
	return event.SkillFile{Name: h.Name, Description: description}, nil
}
