package cli

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/cli/live"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/tool"
)

// formInput returns the answer to a form from flags of the form NAME=VALUE, nil without
// any.
func formInput(form event.FormAsked, given []string) (json.RawMessage, error) {
	if len(given) == 0 {
		return nil, nil
	}
	fields := tool.FieldsOf(form.Schema)
	values := map[string]json.RawMessage{}
	for _, text := range given {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, usagef("--input %q is not of the form NAME=VALUE", text)
		}
		if err := textual("--input", text); err != nil {
			return nil, err
		}
		i := slices.IndexFunc(fields, func(f tool.Field) bool { return f.Name == name })
		if i < 0 {
			return nil, usagef("--input: the form of %s has no field %q; it has: %s", form.Tool, name, strings.Join(fieldNames(fields), ", "))
		}
		values[name] = fieldValue(fields[i], value, values[name])
	}
	return json.Marshal(values)
}

func fieldNames(fields []tool.Field) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
	}
	return names
}

// fieldValue is what a person wrote into a field, as its type has it. A field of several
// values takes one after the other. What does not fit the type stays a text, and the
// schema says what is wrong with it.
func fieldValue(f tool.Field, text string, before json.RawMessage) json.RawMessage {
	quoted, _ := json.Marshal(text)
	switch {
	case f.Type == "array" && json.Valid([]byte(text)) && strings.HasPrefix(strings.TrimSpace(text), "["):
		return json.RawMessage(text)
	case f.Type == "array":
		var all []json.RawMessage
		_ = json.Unmarshal(before, &all)
		list, _ := json.Marshal(append(all, quoted))
		return list
	case f.Type != "string" && f.Type != "" && json.Valid([]byte(text)):
		return json.RawMessage(text)
	}
	return quoted
}

// fieldLine describes a field in one line.
func fieldLine(f tool.Field) string {
	what := []string{f.Type}
	if f.Required {
		what = append(what, "required")
	}
	for i, c := range f.Choices {
		choice := c.Value
		if c.Title != "" {
			choice += " (" + c.Title + ")"
		}
		if i == 0 {
			choice = "one of " + choice
		}
		what = append(what, choice)
	}
	if f.Default != nil {
		what = append(what, "default "+string(f.Default))
	}
	line := strings.Join(slices.DeleteFunc(what, func(s string) bool { return s == "" }), ", ")
	for _, more := range []string{f.Title, f.About} {
		if more != "" {
			line += "; " + more
		}
	}
	return oneLine(line)
}

// fieldFlags returns the flags that answer a form, as an example.
func fieldFlags(form event.FormAsked) string {
	text, fields := "", tool.FieldsOf(form.Schema)
	for _, f := range fields {
		if f.Required || len(fields) == 1 {
			text += " --input " + f.Name + "=…"
		}
	}
	return text
}

// fill asks for the answer to a form, field by field, until it fits.
func (q *prompter) fill(ctx context.Context, form event.FormAsked) (event.Resolution, error) {
	fields := tool.FieldsOf(form.Schema)
	answers, how := "  [y]es, I fill it in, [n]o, n and a reason: ", "  answer y to fill in the form, n to decline, or \"n REASON\" to say why\n"
	if form.Consent != "" {
		answers, how = "  [y]es, [n]o, n and a reason: ", "  answer y to allow it, n to decline, or \"n REASON\" to say why\n"
	}
	if form.URL != "" || form.Command != "" {
		answers, how = "  [y]es, it is done, [n]o, n and a reason: ", "  answer y when it is done, n to decline, or \"n REASON\" to say why\n"
	}
	for {
		line, err := q.choose(ctx, answers, &live.Choice{})
		if err != nil {
			return event.Resolution{}, err
		}
		switch d := decision(line); {
		case d.Kind == event.ApprovalRejected:
			return d, nil
		case d.Kind != event.ApprovalApproved || d.Remember:
			q.p.ask(faint, how)
			continue
		}
		input, err := q.fields(ctx, form, fields)
		return event.Resolution{Kind: event.ApprovalAnswered, Args: input}, err
	}
}

// fields asks for each field, and again for those whose answer does not fit.
func (q *prompter) fields(ctx context.Context, form event.FormAsked, fields []tool.Field) (json.RawMessage, error) {
	values, ask := map[string]json.RawMessage{}, fields
	for {
		for _, f := range ask {
			q.p.ask(faint, "  "+oneLine(f.Name)+": "+fieldLine(f)+"\n")
			line, err := q.line(ctx, "  "+oneLine(f.Name)+": ")
			if err != nil {
				return nil, err
			}
			delete(values, f.Name)
			switch line = strings.TrimSpace(line); {
			case line != "":
				values[f.Name] = fieldValue(f, line, nil)
			case f.Default != nil:
				values[f.Name] = f.Default
			}
		}
		input, err := json.Marshal(values)
		if err != nil {
			return nil, err
		}
		wrong, is := errors.AsType[*tool.InputError](tool.CheckInput(form.Schema, input))
		if !is {
			return input, nil
		}
		bad := map[string]bool{}
		for _, f := range wrong.Fields {
			q.p.ask(red, "  "+oneLine(strings.TrimPrefix(f.Field+": "+f.Message, ": "))+"\n")
			bad[f.Field] = true
		}
		ask = slices.DeleteFunc(slices.Clone(fields), func(f tool.Field) bool { return !bad[f.Name] })
		if len(ask) == 0 {
			ask = fields
		}
	}
}

// formRows returns the fields of a form, and the page that it names.
func formRows(form event.FormAsked, row func(name, value string)) {
	if form.URL != "" {
		row("  page", "of "+oneLine(form.Host)+", which you open yourself: "+firstLine(form.URL, 300))
	}
	if form.Command != "" {
		row("  first", firstLine(form.Command, 1000))
	}
	for _, f := range tool.FieldsOf(form.Schema) {
		row("  "+oneLine(f.Name), firstLine(fieldLine(f), 300))
	}
}

// answerTo checks the answer to a question where it is a form.
func (s *session) answerTo(ctx context.Context, p control.Pending, given []string) (json.RawMessage, error) {
	form, is := p.What.(event.FormAsked)
	if !is {
		if len(given) > 0 {
			return nil, usagef("--input: %s %s is no form; --args changes the arguments of a call", p.Kind, p.ID)
		}
		return nil, nil
	}
	input, err := formInput(form, given)
	if err != nil {
		return nil, err
	}
	wrong, is := errors.AsType[*control.ArgsError](s.controller.CheckArgs(ctx, p, input))
	if is {
		return nil, usagef("--input: %s\n  answer with: pawl runs approve %s %s%s", wrong.Message, p.Run, strings.TrimPrefix(p.ID, p.Run+"-"), fieldFlags(form))
	}
	return input, nil
}
