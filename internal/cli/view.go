package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"os"
	"reflect"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
)

// display shows the events of one run, in order.
type display interface {
	// show takes the next event, durable or live.
	show(event.Event) error
	// end is called once, when no more events come: the run ended or parked.
	end() error
}

// output is how a command shows a run.
type output struct {
	json   bool
	deltas bool
	words  string
	// after is the last event that the person has already seen.
	after int64
}

// flagsUnless adds the output flags. idle is the case, if any, in which no run
// starts and --json prints one object.
func (o *output) flagsUnless(c *cobra.Command, idle string) {
	f := c.Flags()
	usage := "print one event per line on stdout and nothing else, also of the runs below it"
	if idle != "" {
		usage += "; one object " + idle
	}
	f.BoolVar(&o.json, "json", false, usage)
	f.BoolVar(&o.deltas, "deltas", false, "with --json, also print live events")
	f.StringVar(&o.words, "view", "", "print the events as JSON lines in the format of aldo, alfred or rondo")
}

func (o *output) check() error {
	switch {
	case o.words != "" && vocabularies()[o.words] == nil:
		return usagef("--view is %q; it can be aldo, alfred or rondo", o.words)
	case o.words != "" && o.json:
		return usagef("--json and --view exclude each other; --view prints JSON lines already")
	case o.deltas && !o.json:
		return usagef("--deltas needs --json")
	}
	return nil
}

// idle rejects output flags for a command that starts no run.
func (o *output) idle(why string) error {
	switch {
	case o.words != "":
		return usagef("--view %s", why)
	case o.deltas:
		return usagef("--deltas %s", why)
	}
	return nil
}

// events returns the events that the view shows: those of the run's whole tree, or
// of the run alone for another system's vocabulary.
func (o *output) events(r drive.Run) iter.Seq2[event.Event, error] {
	if o.words != "" {
		return r.Events(context.Background(), true)
	}
	return r.Tree(context.Background(), o.deltas || !o.json)
}

// view returns the view that the flags select. Progress goes through p.
func (a *app) view(o output, p *printer) display {
	switch {
	case o.json:
		return &jsonView{out: a.jsonOut()}
	case o.words != "":
		return &wordsView{out: a.jsonOut(), words: vocabularies()[o.words]()}
	}
	return a.textView(o, p)
}

// textView returns the view for a person.
func (a *app) textView(o output, p *printer) *textView {
	v := newTextView(a.out, p, screenOf(a.out, os.Getenv), o.after, a.invocation())
	v.next.pending = a.pending
	return v
}

// jsonView prints one event a line.
type jsonView struct{ out io.Writer }

func (v *jsonView) show(e event.Event) error {
	b, err := e.MarshalJSON()
	if err != nil {
		return err
	}
	_, err = v.out.Write(append(b, '\n'))
	return err
}

func (v *jsonView) end() error { return nil }

// vocabulary translates an event into zero or more objects of another system's
// vocabulary.
type vocabulary interface {
	translate(event.Event) []object
	// end returns the objects that are still pending when the stream ends.
	end() []object
}

func vocabularies() map[string]func() vocabulary {
	return map[string]func() vocabulary{
		"aldo":   func() vocabulary { return aldoWords{} },
		"alfred": func() vocabulary { return &alfredWords{} },
		"rondo":  func() vocabulary { return &rondoWords{} },
	}
}

// wordsView prints a run in another system's vocabulary, one object a line.
type wordsView struct {
	out   io.Writer
	words vocabulary
}

func (v *wordsView) show(e event.Event) error { return v.print(v.words.translate(e)) }

func (v *wordsView) end() error { return v.print(v.words.end()) }

func (v *wordsView) print(objects []object) error {
	for _, o := range objects {
		line, err := o.line()
		if err == nil {
			_, err = v.out.Write(line)
		}
		if err != nil {
			return fmt.Errorf("write the view: %w", err)
		}
	}
	return nil
}

// object is an event in another system's vocabulary: alternating names and values,
// in order. A name that ends in ? is omitted for a zero value. A struct without a
// name adds its members to the object.
type object []any

// line returns the object as JSON.
func (o object) line() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	text := []byte("{")
	for i := 0; i < len(o); i++ {
		name, named := o[i].(string)
		name, optional := strings.CutSuffix(name, "?")
		if named {
			i++
		}
		if optional && reflect.ValueOf(o[i]).IsZero() {
			continue
		}
		b.Reset()
		if err := enc.Encode(o[i]); err != nil {
			return nil, err
		}
		value := bytes.TrimSpace(b.Bytes())
		if named {
			text = append(strconv.AppendQuote(text, name), ':')
		} else {
			value = value[1 : len(value)-1]
		}
		text = append(append(text, value...), ',')
	}
	return append(bytes.TrimSuffix(text, []byte(",")), '}', '\n'), nil
}

// piece returns the event of a piece of an answer, none for an empty piece.
func piece(kind, text string) []object {
	if text == "" {
		return nil
	}
	return []object{{"type", kind, "text", text}}
}

// speech joins the live pieces of an answer with its durable text, so that a reader
// sees everything once: an answer without streaming, or from the journal, has no
// pieces, and a slow reader may have missed some.
type speech struct{ shown strings.Builder }

func (s *speech) piece(text string) string {
	s.shown.WriteString(text)
	return text
}

func (s *speech) reset() { s.shown.Reset() }

// rest returns the part of the whole that was not shown yet.
func (s *speech) rest(whole string) string {
	rest, ok := strings.CutPrefix(whole, s.shown.String())
	s.shown.Reset()
	if !ok {
		return ""
	}
	return rest
}

// argsOf returns a call's arguments as JSON; an invalid fragment becomes a string.
func argsOf(d event.ToolCall) json.RawMessage {
	if d.Args != nil || d.ArgsText == "" {
		return d.Args
	}
	b, err := json.Marshal(d.ArgsText)
	if err != nil {
		return nil
	}
	return b
}
