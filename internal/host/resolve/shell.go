package resolve

import (
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/pawlrun/pawl/event"
)

// Limits on the analysis of a command line. A line beyond them is unclear.
const (
	maxLine     = 64 << 10
	maxNested   = 8
	maxFacts    = 200
	maxStarting = 8
)

const tooLong = "the command line is too long or too deep to be read"

// Shell returns the facts of a command line that /bin/sh runs in the workspace: its
// simple commands at any depth, the files that they and its redirections touch, and the
// hosts that they name. A command line is as dangerous as its worst part, and an
// unknown part makes it unclear.
func (w Workspace) Shell(line string) event.Facts {
	r := &reader{ws: w}
	r.line(line, []string{w.real}, 0)
	if r.links && r.steps > 1 && !w.confined {
		r.unclear("it may make or move a link, and name something by it")
	}
	if r.notOnlyLooks || slices.ContainsFunc(r.facts.Paths, w.arms) || r.looksByGit && r.risk != event.RiskRead {
		r.atLeast(event.RiskExecute)
		for i := range r.facts.Commands {
			r.facts.Commands[i].ReadOnly = false
		}
	}
	r.facts.Risk = r.risk
	if len(r.facts.Unclear) > 0 {
		r.facts.Risk = event.RiskUnknown
	}
	return r.facts
}

// reader collects the facts of one command line.
type reader struct {
	ws    Workspace
	facts event.Facts
	risk  event.Risk
	depth int
	// inside counts the enclosing substitutions.
	inside int
	// files counts the paths, without additional names of a file.
	files int
	// steps counts the commands and redirections with an effect of their own, and named
	// the files that they name. links reports that one may create a link, which does
	// not exist when the line is judged.
	steps, named int
	links        bool
	// looked counts the file names that were compared with patterns, and globbed the
	// listed matches.
	looked, globbed int
	// notOnlyLooks reports that no command of the line is known to change nothing,
	// because a shell may run the value of a variable, or a program is not the one that
	// its name suggests.
	notOnlyLooks bool
	// looksByGit reports that a git command of the line counts as read-only because of
	// the repository that exists before the line writes anything.
	looksByGit bool
}

// anywhere is an unknown directory.
const anywhere = ""

// line reads a command line that runs in one of the directories.
func (r *reader) line(text string, dirs []string, depth int) {
	switch {
	case depth > maxNested || len(text) > maxLine:
		r.unclear(tooLong)
		return
	case strings.ContainsAny(text, "\r\x00"):
		r.unclear("the command line has characters that not every shell reads alike")
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		r.unclear("it cannot be read as a command line: " + trim(err.Error()))
		return
	}
	r.atLeast(event.RiskRead)
	r.depth = depth
	r.misreads(file, text)
	r.list(file.Stmts, dirs)
}

// after holds the possible directories of the shell after a part of the line: after
// success, and in any case.
type after struct{ ok, any []string }

func stay(dirs []string) after { return after{dirs, dirs} }

func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	if len(out) > maxStarting {
		return []string{anywhere}
	}
	return out
}

func (r *reader) list(stmts []*syntax.Stmt, dirs []string) after {
	at := stay(dirs)
	for _, s := range stmts {
		at = r.stmt(s, at.any)
	}
	return at
}

func (r *reader) stmt(s *syntax.Stmt, dirs []string) after {
	if s == nil {
		return stay(dirs)
	}
	for _, redirect := range s.Redirs {
		r.redirect(redirect, dirs)
	}
	at := r.command(s.Cmd, dirs)
	for _, redirect := range s.Redirs {
		if !endsInBackground(redirect) {
			continue
		}
		at = stay(union(dirs, at.any))
		if c, ok := s.Cmd.(*syntax.CallExpr); ok && len(c.Args) > 0 && c.End().After(redirect.Pos()) {
			r.unclear("not every shell takes what stands behind &> for words of the same command")
		}
	}
	if s.Background || s.Coprocess || s.Disown {
		return stay(dirs)
	}
	if s.Negated {
		at.ok = at.any
	}
	return at
}

// endsInBackground reports whether some shells parse the beginning of a redirection as
// the end of a background command: "cd a &>b".
func endsInBackground(n *syntax.Redirect) bool {
	return n.Op == syntax.RdrAll || n.Op == syntax.AppAll
}

func (r *reader) command(c syntax.Command, dirs []string) after {
	switch c := c.(type) {
	case nil:
		return stay(dirs)
	case *syntax.CallExpr:
		return r.call(c, dirs)
	case *syntax.BinaryCmd:
		return r.binary(c, dirs)
	case *syntax.Block:
		return r.list(c.Stmts, dirs)
	case *syntax.Subshell:
		r.list(c.Stmts, dirs)
		return stay(dirs)
	case *syntax.IfClause:
		return r.branches(c, dirs)
	case *syntax.WhileClause:
		return r.repeated(dirs, func(dirs []string) after {
			return r.list(c.Do, r.list(c.Cond, dirs).any)
		})
	case *syntax.ForClause:
		return r.loop(c, dirs)
	case *syntax.CaseClause:
		return r.cases(c, dirs)
	case *syntax.TimeClause:
		return r.stmt(c.Stmt, dirs)
	case *syntax.FuncDecl:
		r.unclear("it declares a function, which may take the place of a program")
		return r.repeated(dirs, func(dirs []string) after { return r.stmt(c.Body, dirs) })
	case *syntax.DeclClause:
		return r.declare(c, dirs)
	}
	// The remaining constructs are parsed differently by some shells.
	r.unclear(fmt.Sprintf("not every shell reads %T alike", c))
	r.substitutions(c, dirs)
	return stay(dirs)
}

func (r *reader) binary(c *syntax.BinaryCmd, dirs []string) after {
	left := r.stmt(c.X, dirs)
	switch c.Op {
	case syntax.AndStmt:
		right := r.stmt(c.Y, left.ok)
		return after{right.ok, union(left.any, right.any)}
	case syntax.OrStmt:
		right := r.stmt(c.Y, left.any)
		return after{union(left.ok, right.ok), union(left.any, right.any)}
	}
	right := r.stmt(c.Y, dirs)
	return stay(union(dirs, union(left.any, right.any)))
}

func (r *reader) branches(c *syntax.IfClause, dirs []string) after {
	cond := r.list(c.Cond, dirs)
	then := r.list(c.Then, cond.any)
	if c.Else == nil {
		return stay(union(cond.any, then.any))
	}
	return stay(union(then.any, r.branches(c.Else, cond.any).any))
}

func (r *reader) loop(c *syntax.ForClause, dirs []string) after {
	switch l := c.Loop.(type) {
	case *syntax.WordIter:
		for _, item := range l.Items {
			r.substitutions(item, dirs)
		}
		r.assign(l.Name.Value, word{text: "$", computed: true})
	default:
		r.unclear("not every shell knows a loop like this")
		r.substitutions(c.Loop, dirs)
	}
	return r.repeated(dirs, func(dirs []string) after { return r.list(c.Do, dirs) })
}

func (r *reader) cases(c *syntax.CaseClause, dirs []string) after {
	r.substitutions(c.Word, dirs)
	all := dirs
	for _, item := range c.Items {
		for _, p := range item.Patterns {
			r.substitutions(p, dirs)
		}
		all = union(all, r.list(item.Stmts, all).any)
	}
	return stay(all)
}

// repeated reads a part that may run any number of times: if it changes the directory,
// the directory of later rounds is unknown.
func (r *reader) repeated(dirs []string, body func([]string) after) after {
	at := body(dirs)
	if !slices.Equal(at.any, dirs) {
		at = body([]string{anywhere})
		return stay(union(dirs, union(at.any, []string{anywhere})))
	}
	return stay(dirs)
}

// substitutions reads the commands inside a word or another construct.
func (r *reader) substitutions(n syntax.Node, dirs []string) {
	if n == nil {
		return
	}
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			if n.TempFile || n.ReplyVar {
				r.unclear("not every shell reads ${ …; } alike")
			}
			r.substitution(n.Stmts, dirs)
			return false
		case *syntax.ProcSubst:
			r.unclear("not every shell reads <( ) alike")
			r.substitution(n.Stmts, dirs)
			return false
		case *syntax.ParamExp:
			r.expansion(n)
		case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause:
			r.notOnlyLooks = true
		}
		return true
	})
}

// substitution reads the commands of one substitution. The nesting depth is bounded
// because the text of a word contains everything within it: printing it for each of
// thousands of levels takes minutes.
func (r *reader) substitution(stmts []*syntax.Stmt, dirs []string) {
	if r.inside == maxNested {
		r.unclear(tooLong)
		return
	}
	r.inside++
	r.list(stmts, dirs)
	r.inside--
}

// redirect reads a redirection.
func (r *reader) redirect(n *syntax.Redirect, dirs []string) {
	r.substitutions(n.Word, dirs)
	r.notOnlyLooks = r.notOnlyLooks || n.N != nil && strings.HasPrefix(n.N.Value, "{")
	if n.Hdoc != nil {
		r.substitutions(n.Hdoc, dirs)
	}
	target := wordOf(n.Word)
	switch n.Op {
	case syntax.RdrIn:
		r.steps++
		r.connects(target)
		r.path(target, dirs, event.PathUse{})
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc, syntax.DplIn:
	case syntax.DplOut:
		if !target.computed && (target.text == "-" || strings.Trim(target.text, "0123456789-") == "") {
			return
		}
		r.writes(target, dirs)
	default:
		r.writes(target, dirs)
	}
}

func (r *reader) writes(w word, dirs []string) {
	if !w.computed && slices.Contains([]string{"/dev/null", "/dev/stdout", "/dev/stderr"}, w.text) {
		return
	}
	r.steps++
	r.connects(w)
	r.atLeast(event.RiskWrite)
	r.path(w, dirs, event.PathUse{Write: true})
}
