package event_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
)

// TestThePageOfEventsIsWhatTheTypesSay keeps docs/events.md, which is generated
// from the Go types and their comments, from growing stale.
func TestThePageOfEventsIsWhatTheTypesSay(t *testing.T) {
	p := newPage(t, ".", "event.", filepath.Join("..", "llm"), "llm.")
	golden(t, filepath.Join("..", "docs", "events.md"), p.render())
}

// page is the declarations that the page is made of, by qualified name.
type page struct {
	t     *testing.T
	types map[string]*declared
	// shapes are the types that events refer to, in the order they come up.
	shapes []string
}

type declared struct {
	name   string
	doc    string
	spec   *ast.TypeSpec
	prefix string
	values []value
}

type value struct{ name, doc string }

func newPage(t *testing.T, dirsAndPrefixes ...string) *page {
	t.Helper()
	p := &page{t: t, types: map[string]*declared{}}
	for i := 0; i < len(dirsAndPrefixes); i += 2 {
		files, err := filepath.Glob(filepath.Join(dirsAndPrefixes[i], "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		var parsed []*ast.File
		for _, f := range files {
			if strings.HasSuffix(f, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), f, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, file)
		}
		p.declare(parsed, dirsAndPrefixes[i+1])
	}
	return p
}

func (p *page) declare(files []*ast.File, prefix string) {
	var consts []*ast.GenDecl
	for _, f := range files {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			switch {
			case ok && g.Tok == token.CONST:
				consts = append(consts, g)
			case ok && g.Tok == token.TYPE:
				for _, s := range g.Specs {
					ts := s.(*ast.TypeSpec)
					doc := ts.Doc
					if doc == nil {
						doc = g.Doc
					}
					p.types[prefix+ts.Name.Name] = &declared{name: ts.Name.Name, doc: prose(doc), spec: ts, prefix: prefix}
				}
			}
		}
	}
	for _, g := range consts {
		for _, s := range g.Specs {
			p.constant(s.(*ast.ValueSpec), prefix)
		}
	}
}

func (p *page) constant(v *ast.ValueSpec, prefix string) {
	id, ok := v.Type.(*ast.Ident)
	if !ok || len(v.Values) != 1 || p.types[prefix+id.Name] == nil {
		return
	}
	lit, ok := v.Values[0].(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return
	}
	text, err := strconv.Unquote(lit.Value)
	if err != nil {
		p.t.Fatal(err)
	}
	doc := prose(v.Doc)
	if _, after, ok := strings.Cut(doc, ": "); ok && strings.HasPrefix(doc, v.Names[0].Name) {
		doc = after
	}
	d := p.types[prefix+id.Name]
	d.values = append(d.values, value{name: text, doc: doc})
}

// prose is a comment as one paragraph, without the brackets of links.
func prose(g *ast.CommentGroup) string {
	if g == nil {
		return ""
	}
	return strings.NewReplacer("[", "", "]", "", "|", "\\|", "<", "&lt;").Replace(strings.Join(strings.Fields(g.Text()), " "))
}

func (p *page) render() []byte {
	var b bytes.Buffer
	b.WriteString(`# The events

Every durable record of a run has this envelope; what the event says is in ` + "`data`" + `. The vocabulary only grows: a reader
passes over fields and kinds that it does not know.

Keys are camelCase, here, in what ` + "`--json`" + ` prints and in the HTTP API. Two kinds of keys are snake_case, because they are
ALDO's and programs read them by these names: settings, also those in ` + "`config`" + `, have the key of the file that sets them
(` + "`max_cycles`, `usd_per_run`" + `), and the texts of an outcome are ` + "`final_output`, `last_output` and `next_safe_action`" + `.
What a tool, a model or a schema gives keeps its own keys.

This page is generated from the Go types; ` + "`go test ./event -update`" + ` writes it anew.

`)
	p.table(&b, p.types["event.Event"], map[string]string{
		"Pos": "pos", "Seq": "seq", "Run": "run", "Parent": "parent", "Time": "time", "SkippedMs": "skippedMs", "Cycle": "cycle", "Step": "step", "Data": "data", "Prev": "prev",
	})
	b.WriteString("\n`type` is the event's name. Members that are absent are zero or empty.\n")
	for _, d := range event.All() {
		p.section(&b, "## "+string(d.EventType()), reflect.TypeOf(d).Name())
	}
	b.WriteString("\n# Live only\n\nPublished while a model speaks or a tool works, never stored: neither `pos` nor `seq`.\n")
	for _, d := range []event.Data{event.Text{}, event.Reasoning{}, event.ToolCallDelta{}, event.TextReset{}, event.ToolProgress{}, event.ToolOutput{}} {
		p.section(&b, "## "+string(d.EventType()), reflect.TypeOf(d).Name())
	}
	b.WriteString("\n# Shapes\n\nWhat the fields above are made of.\n")
	for i := 0; i < len(p.shapes); i++ { // grows while it is walked
		p.shape(&b, p.types[p.shapes[i]])
	}
	return b.Bytes()
}

func (p *page) section(b *bytes.Buffer, title, name string) {
	d := p.types["event."+name]
	if d == nil || d.doc == "" {
		p.t.Errorf("%s has no comment", name)
		return
	}
	fmt.Fprintf(b, "\n%s\n\n%s\n\n", title, d.doc)
	p.table(b, d, nil)
}

func (p *page) shape(b *bytes.Buffer, d *declared) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n", d.name, d.doc)
	if len(d.values) > 0 {
		b.WriteString("\n| value | meaning |\n| --- | --- |\n")
		for _, v := range d.values {
			fmt.Fprintf(b, "| `%s` | %s |\n", v.name, v.doc)
		}
	}
	if _, ok := d.spec.Type.(*ast.StructType); ok {
		b.WriteString("\n")
		p.table(b, d, nil)
	}
}

// table lists a struct's fields by their JSON names; names stands in for tags.
func (p *page) table(b *bytes.Buffer, d *declared, names map[string]string) {
	fields := d.spec.Type.(*ast.StructType).Fields.List
	if len(fields) == 0 {
		b.WriteString("No fields.\n")
		return
	}
	b.WriteString("| field | type | meaning |\n| --- | --- | --- |\n")
	for _, f := range fields {
		name := names[f.Names[0].Name]
		optional := name == "parent" || name == "skippedMs" || name == "cycle" || name == "step" || name == "prev"
		if f.Tag != nil {
			tag, _ := strconv.Unquote(f.Tag.Value)
			parts := strings.Split(reflect.StructTag(tag).Get("json"), ",")
			name, optional = parts[0], slices.Contains(parts, "omitempty") || slices.Contains(parts, "omitzero")
		}
		if name == "-" {
			continue
		}
		if name == "" {
			p.t.Errorf("%s.%s has no JSON name", d.name, f.Names[0].Name)
		}
		kind := p.kind(f.Type, d.prefix)
		if optional {
			kind += ", may be absent"
		}
		meaning := prose(f.Doc)
		if meaning == "" {
			meaning = prose(f.Comment)
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", name, kind, meaning)
	}
}

// kind is a Go type in the words of JSON.
func (p *page) kind(x ast.Expr, prefix string) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return p.kind(x.X, prefix)
	case *ast.ArrayType:
		if id, ok := x.Elt.(*ast.Ident); ok && id.Name == "byte" {
			return "base64"
		}
		return "list of " + p.kind(x.Elt, prefix)
	case *ast.MapType:
		return "object of " + p.kind(x.Value, prefix)
	case *ast.SelectorExpr:
		switch name := x.X.(*ast.Ident).Name + "." + x.Sel.Name; name {
		case "time.Time":
			return "time"
		case "json.RawMessage":
			return "JSON"
		default:
			return p.refer(name)
		}
	case *ast.Ident:
		switch x.Name {
		case "string":
			return "string"
		case "bool":
			return "boolean"
		case "int", "int64", "uint16", "float64":
			return "number"
		case "Data":
			return "object"
		}
		return p.refer(prefix + x.Name)
	}
	p.t.Fatalf("no word for %T", x)
	return ""
}

// refer links to a shape and sees to it that the page has it.
func (p *page) refer(name string) string {
	d := p.types[name]
	if d == nil {
		p.t.Fatalf("there is no type %s", name)
	}
	if !slices.Contains(p.shapes, name) {
		p.shapes = append(p.shapes, name)
	}
	return "[" + d.name + "](#" + strings.ToLower(d.name) + ")"
}
