package engine

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/result"
)

// excerpt is an output as the model sees it, and where the whole of it lies if
// that is longer (F13).
type excerpt struct {
	text, blob string
	// whole is what text is an excerpt of, empty where nothing is left out.
	whole string
}

// contains are those of the texts that stand in what was cut.
func (x excerpt) contains(texts []string) []string {
	var found []string
	for _, text := range texts {
		if x.whole != "" && strings.Contains(x.whole, text) {
			found = append(found, text)
		}
	}
	return found
}

// excerpt cuts an output that is longer than limit characters to its head and
// tail and keeps the whole. partial says that the tool itself left some of it
// out.
func (d *driver) excerpt(output string, limit int, partial bool) excerpt {
	cut, ok := tool.Cut(output, limit)
	if !ok {
		return excerpt{text: stored(output)}
	}
	digest := d.blobs.keep([]byte(output))
	return excerpt{text: stored(cut.Text(d.readOn(digest, cut.From, partial))), blob: digest, whole: output}
}

// readOn says how to get at what was left out.
func (d *driver) readOn(digest string, from int, partial bool) string {
	how := "the whole is kept as " + digest
	if _, ok := d.env.Tools.Lookup(result.Name); ok {
		how = `read on with ` + result.Name + ` {"handle":"` + digest + `","offset":` + strconv.Itoa(from) + `}`
	}
	if partial {
		how += "; what is kept is not the whole either, because the tool had left some of it out"
	}
	return how
}

// excerptOfError is the structured form of a failed call. Its output is cut
// before it is put into the structure, so that the structure stays whole and
// what is kept reads as the tool wrote it.
func (d *driver) excerptOfError(kind event.ErrorType, message string, r tool.Result, limit int) excerpt {
	whole := tool.ErrorOutput(kind, message, r.Output)
	if _, over := tool.Cut(whole, limit); !over {
		return excerpt{text: stored(whole)}
	}
	// Quotes and line ends take more room within the structure than without.
	digest := journal.Digest([]byte(r.Output))
	room := limit - utf8.RuneCountInString(tool.ErrorOutput(kind, message, ""))
	for ; room > limit/8; room = room * 3 / 4 {
		cut, ok := tool.Cut(r.Output, room)
		if !ok {
			continue
		}
		text := stored(tool.ErrorOutput(kind, message, cut.Text(d.readOn(digest, cut.From, r.Truncated))))
		if utf8.RuneCountInString(text) <= limit {
			return excerpt{text: text, blob: d.blobs.keep([]byte(r.Output)), whole: whole}
		}
	}
	return d.excerpt(whole, limit, r.Truncated)
}

// stored is a text as it comes back from the journal, so that a request has
// the same bytes before and after a restart: each byte that is not UTF-8
// becomes a replacement character.
func stored(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		b.WriteRune(r)
	}
	return b.String()
}
