package plan

import (
	"regexp"
	"slices"
	"strings"
)

// Piece is a part of a step's text with values: literal text, or the path of a value,
// as in {{item}} and {{steps.list.result.path}}.
type Piece struct {
	Text string
	Path []string
}

// reference matches a path in braces. A backslash before it quotes it.
var reference = regexp.MustCompile(`\\?\{\{[ \t]*([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_-]+)*)[ \t]*\}\}`)

// roots are the possible first parts of a value's path.
var roots = []string{"input", "item", "index", "steps"}

// Pieces parses a text. Braces with anything else are literal text, so that the
// templates of other programs stay unchanged.
func Pieces(text string) []Piece {
	var pieces []Piece
	done := 0
	add := func(p Piece) {
		if n := len(pieces); len(p.Path) == 0 && n > 0 && len(pieces[n-1].Path) == 0 {
			pieces[n-1].Text += p.Text
		} else if len(p.Path) > 0 || p.Text != "" {
			pieces = append(pieces, p)
		}
	}
	for _, m := range reference.FindAllStringSubmatchIndex(text, -1) {
		path := strings.Split(text[m[2]:m[3]], ".")
		add(Piece{Text: text[done:m[0]]})
		switch done = m[1]; {
		case text[m[0]] == '\\':
			add(Piece{Text: text[m[0]+1 : m[1]]})
		case slices.Contains(roots, path[0]):
			add(Piece{Path: path})
		default:
			add(Piece{Text: text[m[0]:m[1]]})
		}
	}
	add(Piece{Text: text[done:]})
	return pieces
}

// Unknown returns the names in braces that name no value and are not quoted.
func Unknown(text string) []string {
	var names []string
	for _, m := range reference.FindAllStringSubmatch(text, -1) {
		if root, _, _ := strings.Cut(m[1], "."); m[0][0] != '\\' && !slices.Contains(roots, root) && !slices.Contains(names, m[1]) {
			names = append(names, m[1])
		}
	}
	return names
}

// Named returns the paths of the values in a text.
func Named(text string) [][]string {
	var paths [][]string
	for _, p := range Pieces(text) {
		if len(p.Path) > 0 {
			paths = append(paths, p.Path)
		}
	}
	return paths
}

// Keep quotes the names of a text for which keep returns true.
func Keep(text string, keep func(path []string) bool) string {
	return reference.ReplaceAllStringFunc(text, func(found string) string {
		pieces := Pieces(found)
		if len(pieces) != 1 || len(pieces[0].Path) == 0 || !keep(pieces[0].Path) {
			return found
		}
		return `\` + found
	})
}

// Tells reports whether a step, or a step in it, starts with a text.
func (s *Step) Tells() bool {
	switch {
	case s.Plan != nil:
		return slices.ContainsFunc(s.Plan.Steps, func(in Step) bool { return in.Tells() })
	case s.Loop != nil:
		return slices.ContainsFunc(s.Loop.Body.Steps, func(in Step) bool { return in.Tells() })
	}
	return s.Agent != nil || s.Run != nil
}

// AsksForInput reports whether a text of a step contains the run's input.
func (p *Plan) AsksForInput() (asks bool) {
	p.Each(func(s *Step) {
		for _, text := range s.Texts() {
			named := slices.ContainsFunc(Named(text), func(path []string) bool { return path[0] == "input" })
			asks = asks || named || s.Command != nil && strings.Contains(text, "PAWL_INPUT")
		}
	})
	return asks
}

// Texts returns the step's own texts that may contain values.
func (s *Step) Texts() []string {
	switch {
	case s.Agent != nil:
		return []string{s.Agent.Instructions}
	case s.Command != nil:
		return s.Command.Argv
	case s.Run != nil:
		return []string{s.Run.Instructions}
	}
	return nil
}
