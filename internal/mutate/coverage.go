package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// module is the module whose packages are mutated.
const module = "github.com/pawlrun/pawl"

// span is a part of a file, from one line and column to another.
type span struct{ from, to [2]int }

func (s span) contains(at [2]int) bool {
	return slices.Compare(s.from[:], at[:]) <= 0 && slices.Compare(at[:], s.to[:]) < 0
}

var block = regexp.MustCompile(`(?m)^(.+):(\d+)\.(\d+),(\d+)\.(\d+) \d+ (\d+)$`)

// addUncounted adds to a coverage profile what runs although the profile does not
// count it: the conditions of the cases of each switch that runs, and the values of
// a package's variables and constants. The profile's files are read below the
// current directory, which is the module's.
func addUncounted(profile string) error {
	text, err := os.ReadFile(profile)
	if err != nil {
		return err
	}
	ran := map[string][]span{}
	for _, m := range block.FindAllStringSubmatch(string(text), -1) {
		var n [5]int
		for i := range n {
			n[i], _ = strconv.Atoi(m[i+2])
		}
		if ran[m[1]] == nil {
			ran[m[1]] = []span{}
		}
		if n[4] > 0 {
			ran[m[1]] = append(ran[m[1]], span{[2]int{n[0], n[1]}, [2]int{n[2], n[3]}})
		}
	}
	for name, spans := range ran {
		source, err := os.ReadFile(strings.TrimPrefix(name, module+"/"))
		if err != nil {
			return err
		}
		more, err := uncounted(path.Base(name), source, spans)
		if err != nil {
			return err
		}
		for _, s := range more {
			text = fmt.Appendf(text, "%s:%d.%d,%d.%d 1 1\n", name, s.from[0], s.from[1], s.to[0], s.to[1])
		}
	}
	return os.WriteFile(profile, text, 0o600)
}

// uncounted are the parts of a file that run and that no profile counts, where these
// parts of it ran.
func uncounted(name string, source []byte, ran []span) (more []span, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	at := func(p token.Pos) [2]int { pos := set.Position(p); return [2]int{pos.Line, pos.Column} }
	for _, d := range file.Decls {
		if d, ok := d.(*ast.GenDecl); ok && d.Tok != token.IMPORT {
			more = append(more, span{at(d.Pos()), at(d.End())})
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		s, ok := n.(*ast.SwitchStmt)
		if !ok || !slices.ContainsFunc(append(ran, more...), func(r span) bool { return r.contains(at(s.Pos())) }) {
			return true
		}
		for _, c := range s.Body.List {
			if values := c.(*ast.CaseClause).List; len(values) > 0 {
				more = append(more, span{at(values[0].Pos()), at(values[len(values)-1].End())})
			}
		}
		return true
	})
	return more, nil
}
