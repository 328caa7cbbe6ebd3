package wire

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"

	"github.com/pawlrun/pawl/llm"
)

// foreign reports whether the body is visibly something else than an answer: no
// line of it was one of a stream, or it is a page for people that calls itself
// one. The type alone does not tell, because proxies rewrite that of streams too,
// and those are paid for.
func (x *Exchange) foreign(spoken bool) bool {
	head := x.head()
	switch {
	case len(head) == 0:
		return x.Response.StatusCode == http.StatusNoContent
	case bytes.HasPrefix([]byte(byteOrderMark), head):
		return false
	case x.lines:
		return true
	case head[0] == '{':
		member := withoutBlanks(head[1:])
		return len(member) > 0 && member[0] != '"' && member[0] != '}'
	}
	return !spoken || head[0] == '<' && x.calledPage()
}

// opaque reports whether an answer may be in a foreign body all the same, in a form
// that was not asked for: a list of what a stream would give, or lines of it, or
// a compression.
func (x *Exchange) opaque() bool {
	return x.lines || bytes.HasPrefix(x.head(), []byte{'['}) || x.Response.Header.Get("Content-Encoding") != ""
}

// inLines reports whether a body is one object after the other, as Ollama's own
// API and others stream. No whole answer goes on behind its end, and none that
// was cut has one.
func inLines(body []byte) bool {
	end := valueEnd(body, skipSpace(body, 0), 0)
	return end >= 0 && bytes.HasPrefix(withoutBlanks(body[end:]), []byte{'{'})
}

// head is the beginning of the body, as far as it was kept.
func (x *Exchange) head() []byte { return withoutBlanks(x.begun.seen) }

// calledPage reports whether the answer calls itself a page for people.
func (x *Exchange) calledPage() bool {
	return strings.HasPrefix(x.Response.Header.Get("Content-Type"), "text/html")
}

// notAnswered is the error of an answer that is foreign: a login page, a proxy's
// words, a server that speaks no such API. What stands in the way may pass, as a
// page that tells of maintenance does, and to ask again costs nothing; but what
// may be a model's answer would be paid for each time.
func (c *Client) notAnswered(x *Exchange, err error) *llm.Error {
	status, header, class := x.Response.StatusCode, x.Response.Header, llm.ClassNetwork
	if x.opaque() {
		class = llm.ClassInvalid
	}
	came := fmt.Sprintf("HTTP %d", status)
	for _, name := range [...]string{"Content-Type", "Content-Encoding"} {
		if value := header.Get(name); value != "" {
			came += fmt.Sprintf(", %s %s", name, x.quoted(value))
		}
	}
	began := "is empty"
	if head := x.head(); len(head) > 0 {
		began = "began with " + x.quoted(string(head))
	}
	return x.Redact(&llm.Error{
		Class: class, Provider: c.Provider, Status: status, RequestID: x.RequestID, Err: err,
		Message: fmt.Sprintf("what answered does not speak this API (%s): it %s; look at the base URL and at proxies on the way; asked was %s",
			came, began, plain(*x.Response.Request.URL)),
	})
}

// maxQuoted bounds what an error quotes of a body that is no error's.
const maxQuoted = 200

// quoted returns the beginning of a text from an unknown sender, escaped. It is cut
// after the redaction, which would miss half a credential, and drops an incomplete
// credential at the end of the text itself.
func (x *Exchange) quoted(text string) string {
	text = x.redact(text)
	for _, s := range x.secrets() {
		for n := min(len(s), len(text)); n >= minSecret; n-- {
			if half, cut := strings.CutSuffix(text, s[:n]); cut {
				text = half + redacted
				break
			}
		}
	}
	if len(text) <= maxQuoted {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%q…", strings.ToValidUTF8(text[:maxQuoted], ""))
}
