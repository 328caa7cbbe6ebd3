package plan

import (
	"fmt"
	"strings"
)

// Tree draws the plan as a tree, one line per step: its id, its kind, its dependencies
// and its loop.
func (p *Plan) Tree() string {
	var b strings.Builder
	b.WriteString(p.Name + "\n")
	p.branches(&b, "")
	return b.String()
}

func (p *Plan) branches(b *strings.Builder, indent string) {
	for i := range p.Steps {
		mark, below := "├─ ", "│  "
		if i == len(p.Steps)-1 {
			mark, below = "└─ ", "   "
		}
		s := &p.Steps[i]
		b.WriteString(indent + mark + strings.Join(append([]string{s.ID}, s.About()...), "  ") + "\n")
		if inner := s.Inner(); inner != nil {
			inner.branches(b, indent+below)
		}
	}
}

// About returns the text about a step, after its id: what performs it, its loop, its
// dependencies and its condition.
func (s *Step) About() []string {
	var words []string
	if who := s.who(); who != "" {
		words = append(words, who)
	}
	if s.Loop != nil {
		words = append(words, s.Loop.about())
	}
	if len(s.DependsOn) > 0 {
		words = append(words, "after "+strings.Join(s.DependsOn, ", "))
	}
	if s.Condition != "" {
		words = append(words, "if "+oneLine(s.Condition))
	}
	return words
}

// who returns what performs a step, in brackets.
func (s *Step) who() string {
	switch {
	case s.Agent != nil:
		return "[" + s.Agent.Name + "]"
	case s.Func != nil:
		return "[func " + s.Func.Name + "]"
	case s.Command != nil:
		return "[" + oneLine(strings.Join(s.Command.Argv, " ")) + "]"
	case s.Run != nil:
		return "[" + s.Run.Name + "]"
	case s.Loop != nil && s.Loop.Single:
		return s.Loop.Body.Steps[0].who()
	}
	return ""
}

// Inner returns the graph in a step, nil if it has none.
func (s *Step) Inner() *Plan {
	switch {
	case s.Plan != nil:
		return s.Plan
	case s.Loop != nil && !s.Loop.Single:
		return &s.Loop.Body
	}
	return nil
}

func (l *Loop) about() string {
	if items := l.Items; items != nil {
		of := fmt.Sprintf("for each of %d items", len(items.Static))
		if items.Expression != "" {
			of = "for each of " + oneLine(items.Expression)
		}
		if items.Concurrency > 0 {
			of += fmt.Sprintf(", %d at once", items.Concurrency)
		}
		return of
	}
	words := fmt.Sprintf("up to %d times", l.Max)
	if len(l.StopWhen) == 0 {
		words = fmt.Sprintf("%d times", l.Max)
	}
	for i, stop := range l.StopWhen {
		join := ", until "
		switch {
		case i > 0 && l.Goal != nil:
			join = " and "
		case i > 0:
			join = " or "
		}
		words += join + stop.about()
	}
	return words
}

func (s Stop) about() string {
	switch {
	case s.Expression != "":
		return oneLine(s.Expression)
	case s.Eval != nil && s.Judge == "":
		return s.Eval.String()
	case s.Judge != "":
		return s.Judge + " says so"
	case s.Regex != "":
		return "/" + oneLine(s.Regex) + "/"
	case s.Command != nil:
		return "`" + oneLine(strings.Join(s.Command.Argv, " ")) + "`"
	case s.Human != nil:
		return "a person approves"
	}
	return "?"
}

// oneLine returns a text without line breaks, truncated if it is long.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > 80 {
		text = string(runes[:79]) + "…"
	}
	return text
}

// Mermaid draws the plan as a Mermaid flowchart.
func (p *Plan) Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	p.nodes(&b, "s", "  ")
	return b.String()
}

// nodes writes the steps and their edges. The nodes have the places of steps as ids,
// because a step's id may be a keyword of the language.
func (p *Plan) nodes(b *strings.Builder, prefix, indent string) {
	places := map[string]string{}
	for i := range p.Steps {
		s := &p.Steps[i]
		id := fmt.Sprintf("%s%d", prefix, i)
		places[s.ID] = id
		label := s.ID
		for _, word := range s.About() {
			if !strings.HasPrefix(word, "after ") {
				label += "<br/>" + escaped(word)
			}
		}
		if inner := s.Inner(); inner != nil {
			fmt.Fprintf(b, "%ssubgraph %s[\"%s\"]\n", indent, id, label)
			inner.nodes(b, id+"_", indent+"  ")
			b.WriteString(indent + "end\n")
			continue
		}
		fmt.Fprintf(b, "%s%s[\"%s\"]\n", indent, id, label)
	}
	for i := range p.Steps {
		for _, d := range p.Steps[i].DependsOn {
			fmt.Fprintf(b, "%s%s --> %s%d\n", indent, places[d], prefix, i)
		}
	}
}

// escaped returns a text for the label of a node.
func escaped(text string) string {
	return strings.NewReplacer("&", "&amp;", `"`, "&quot;", "<", "&lt;", ">", "&gt;", "#", "&#35;", "`", "&#96;").Replace(text)
}
