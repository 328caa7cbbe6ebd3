package fs

import (
	"context"
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/tool"
)

type editArgs struct {
	Path       string `json:"path" jsonschema:"path of the file, relative to the workspace"`
	OldString  string `json:"old_string" jsonschema:"the exact text to replace, without line numbers; it must occur once"`
	NewString  string `json:"new_string" jsonschema:"the text to put in its place"`
	ReplaceAll bool   `json:"replace_all,omitempty" jsonschema:"replace every occurrence"`
}

const editName = "fs.edit"

func (w *Workspace) editTool() tool.Tool {
	t := tool.NewWithCall(editName, "Replace a piece of text in a file. The file must have been read before.", withinCall(w, w.edit))
	t.Aliases = []string{"edit"}
	w.writes(&t, "edit")
	return t
}

func (w *Workspace) edit(ctx context.Context, c tool.Call, a editArgs) (tool.Result, error) {
	p, err := w.resolve(a.Path)
	if err != nil {
		return tool.Result{}, err
	}
	r := tool.Result{}
	err = w.update(ctx, p, func(old []byte) ([]byte, error) {
		known, ok := seen(c, p)
		if !ok {
			return nil, unread(p)
		}
		content, n, line, err := replace(p, string(old), a)
		changed := known != digest(old)
		if changed && (n != 1 || err != nil) {
			return nil, conflict("%s has changed since it was read, and old_string occurs %s in it now; read it again", quote(p), times(n))
		}
		if err != nil {
			return nil, err
		}
		r.Output = fmt.Sprintf("%s: replaced %s, the first at line %d", quote(p), occurrences(n), line)
		whole := true
		if changed {
			var said string
			said, whole = w.since(known, old)
			r.Output += "; " + said
		}
		if whole {
			r.Files = w.now(p, []byte(content))
		}
		return []byte(content), nil
	})
	if err != nil {
		return tool.Result{}, err
	}
	return r, nil
}

// replace makes an edit. It returns the new text, how often the old string occurred,
// and the line of the first occurrence.
func replace(p, text string, a editArgs) (content string, n, line int, err error) {
	if a.OldString == "" || a.OldString == a.NewString {
		return "", 0, 0, invalid("old_string must be some text that differs from new_string")
	}
	f := formatOf([]byte(text))
	from, to, err := f.asKept(p, a.OldString, a.NewString)
	if err != nil {
		return "", 0, 0, err
	}
	n = strings.Count(text, from)
	if crlf := toCRLF(from); n == 0 && (f.crlf || f.mixed) && crlf != from {
		// fs.read does not show which kind of line end a line has.
		from, to = crlf, toCRLF(to)
		n = strings.Count(text, from)
	}
	switch {
	case n == 0:
		return "", 0, 0, conflict("old_string does not occur in %s; it must match exactly, white space included%s", quote(p), near(text, a.OldString))
	case n > 1 && !a.ReplaceAll:
		return "", n, 0, conflict("old_string occurs %d times in %s; give more context, or set replace_all", n, quote(p))
	case len(text)+n*(len(to)-len(from)) > maxEdit:
		return "", n, 0, invalid("%s would grow beyond %d bytes", quote(p), maxEdit)
	}
	line = strings.Count(text[:strings.Index(text, from)], "\n") + 1
	return strings.ReplaceAll(text, from, to), n, line, nil
}

// asKept converts an edit to the encoding and the line ends of the file.
func (f format) asKept(p, from, to string) (string, string, error) {
	if f.encoding == latin1 {
		encoded, bad := toLatin1(to)
		if bad != 0 {
			return "", "", invalid("%s is kept in Latin-1, which has no %q; leave the character out, or convert the file to UTF-8 with a command first", quote(p), bad)
		}
		to = encoded
		if encoded, bad = toLatin1(from); bad == 0 {
			from = encoded
		}
	}
	if f.crlf {
		from, to = toCRLF(from), toCRLF(to)
	}
	return from, to, nil
}

func times(n int) string {
	switch n {
	case 0:
		return "nowhere"
	case 1:
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func occurrences(n int) string {
	if n == 1 {
		return "1 occurrence"
	}
	return fmt.Sprintf("%d occurrences", n)
}

func toCRLF(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n")
}

// near returns a hint to the place that the model may have meant: where the first line
// of the old string occurs with other white space around it.
func near(text, old string) string {
	wanted := ""
	for l := range strings.Lines(old) {
		if wanted = strings.TrimSpace(l); wanted != "" {
			break
		}
	}
	if wanted == "" {
		return ""
	}
	n := 0
	for l := range strings.Lines(text) {
		if n++; strings.Contains(l, wanted) {
			return fmt.Sprintf(". Its first line occurs at line %d, but what surrounds it differs", n)
		}
	}
	return ""
}
