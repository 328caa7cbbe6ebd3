package drive

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/result"
)

// Excerpt is an output as the model sees it, with the digest of the whole if that is
// longer.
type Excerpt struct {
	Text, Blob string
	// Full is the whole text, empty if nothing is omitted.
	Full string
}

// Contains returns the texts that occur in the omitted part.
func (x Excerpt) Contains(texts []string) []string {
	var found []string
	for _, text := range texts {
		if x.Full != "" && strings.Contains(x.Full, text) {
			found = append(found, text)
		}
	}
	return found
}

// Excerpt reduces an output that is longer than limit characters to its head and tail
// and stores the whole. partial reports that the tool itself omitted a part.
func (r *Recorder) Excerpt(output string, limit int, partial bool) Excerpt {
	cut, ok := tool.Cut(output, limit)
	if !ok {
		return Excerpt{Text: Stored(output)}
	}
	digest := r.Blobs.Keep([]byte(output))
	return Excerpt{Text: Stored(cut.Text(r.readOn(digest, cut.From, partial))), Blob: digest, Full: output}
}

// readOn returns a line about how to read the omitted part.
func (r *Recorder) readOn(digest string, from int, partial bool) string {
	how := "the whole is kept as " + digest
	if r.readsOn {
		how = `read on with ` + result.Name + ` {"handle":"` + digest + `","offset":` + strconv.Itoa(from) + `}`
	}
	if partial {
		how += "; what is kept is not the whole either, because the tool had left some of it out"
	}
	return how
}

// Overwritten returns the line below an output about how many of its lines later output
// replaced, and where to read them; empty for none.
func (r *Recorder) Overwritten(digest string, lines int) string {
	if lines == 0 {
		return ""
	}
	where := "the output as it came is kept as " + digest
	if r.readsOn {
		where = result.Name + ` {"handle":"` + digest + `"} has the output as it came`
	}
	return fmt.Sprintf("\n[%d overwritten progress lines left out; %s]\n", lines, where)
}

// ExcerptOfError returns the structured form of a failed call. It cuts the output
// before adding it to the structure, so that the structure stays complete and the
// stored text is the tool's.
func (r *Recorder) ExcerptOfError(kind event.ErrorType, message string, of tool.Result, limit int) Excerpt {
	whole := tool.ErrorOutput(kind, message, of.Output)
	if _, over := tool.Cut(whole, limit); !over {
		return Excerpt{Text: Stored(whole)}
	}
	// Quotes and line ends take more room within the structure.
	digest := journal.Digest([]byte(of.Output))
	room := limit - utf8.RuneCountInString(tool.ErrorOutput(kind, message, ""))
	for ; room > limit/8; room = room * 3 / 4 {
		cut, ok := tool.Cut(of.Output, room)
		if !ok {
			continue
		}
		text := Stored(tool.ErrorOutput(kind, message, cut.Text(r.readOn(digest, cut.From, of.Truncated))))
		if utf8.RuneCountInString(text) <= limit {
			return Excerpt{Text: text, Blob: r.Blobs.Keep([]byte(of.Output)), Full: whole}
		}
	}
	return r.Excerpt(whole, limit, of.Truncated)
}

// Stored returns a text as the journal returns it, so that a request has the same bytes
// before and after a restart: each invalid UTF-8 byte becomes a replacement character.
func Stored(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		b.WriteRune(r)
	}
	return b.String()
}
